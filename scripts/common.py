"""What the test scripts share: the table of causes, running the program, the sets of captures.

The table is the published one, docs/schema/causes.json: the scripts judge by the contract that readers have, and a change of
it shows as a change of that file.
"""

import concurrent.futures
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.environ.get('TCPWHY_SHARED', os.path.join(ROOT, '..', 'shared'))
BINARY = os.path.join(os.environ.get('CARGO_TARGET_DIR', os.path.join(ROOT, 'target')), 'release', 'tcpwhy')

with open(os.path.join(ROOT, 'docs', 'schema', 'causes.json'), encoding='utf8') as _f:
    CAUSES = {row['id']: row for row in json.load(_f)['causes']}
SPAN_CAUSES = {i: row['class'] for i, row in CAUSES.items() if row['kind'] == 'span'}
INHERENT = tuple(i for i, letter in SPAN_CAUSES.items() if letter == 'I')
APPLICATION = tuple(i for i, letter in SPAN_CAUSES.items() if letter == 'A')
AVOIDABLE = tuple(i for i, letter in SPAN_CAUSES.items() if letter == 'T')
FINDINGS_ONLY = tuple(i for i, row in CAUSES.items() if row['kind'] == 'finding')
UNEXPLAINED = 'unexplained'


class Failed(Exception):
    """The program did not give a usable answer."""


def explain(binary, path, *more, timeout=300):
    """The JSON of `explain`, and the exit code. Failed: crash, time-out, no JSON. None: refused with exit code 3."""
    command = [binary, 'explain', path, '--json', *more]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            env=dict(os.environ, NO_COLOR='1'),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f'no answer within {timeout} s') from None
    except OSError as error:
        raise Failed(f'cannot run {binary}: {error.strerror}') from None
    said = done.stderr.decode('utf8', 'replace').strip()
    if done.returncode == 3:
        return None, 3
    if done.returncode not in (0, 1) or 'panicked' in said:
        raise Failed(f'exit code {done.returncode}: {said[-200:]}')
    try:
        return json.loads(done.stdout.decode('utf8'), parse_constant=_no_constant), done.returncode
    except ValueError as error:
        raise Failed(f'not JSON: {error}') from None


def _no_constant(name):
    raise ValueError(f'{name} is not JSON')


def generator():
    """The program that writes large captures and measures runs (crates/lab/examples/gen_capture), built if need be."""
    command = ['cargo', 'build', '--release', '--locked', '--quiet', '--workspace', '--example', 'gen_capture']
    subprocess.run(command, cwd=ROOT, check=True)
    return os.path.join(os.path.dirname(BINARY), 'examples', 'gen_capture')


def have(command):
    """Whether a command is installed."""
    return any(os.access(os.path.join(d, command), os.X_OK) for d in os.environ.get('PATH', '').split(os.pathsep))


def captures_in(folder):
    """Capture files directly in a folder."""
    names = ('*.pcap', '*.pcapng', '*.cap', '*.pcap.gz', '*.pcap.zst', '*.pcapng.gz', '*.pcapng.zst')
    return sorted(p for n in names for p in glob.glob(os.path.join(folder, n)))


class Labelled:
    """One end of one labelled experiment.

    `origin`: who made the packets (lab, synth, rewritten, model). `half`: `learn`, or `score` for cases that nobody looks at
    while rules are made. `family`: what a made case is about; experiments have none.
    """

    def __init__(self, folder, end, truth, label=None):
        label = label or {}
        self.name, self.end = os.path.basename(folder), end
        self.origin, self.half = label.get('origin', 'lab'), label.get('half', 'learn')
        self.family = label.get('family', 'experiment')
        self.path = os.path.join(folder, truth['file'])
        self.checks, self.connections, self.packets = truth['checks'], truth['connections'], truth['packets']

    def __repr__(self):
        return f'{self.name} {self.end}'

    def cause(self):
        """The first right answer; labels list the one with the most time first among its parts."""
        check = self.checks[0]
        ranked = sorted(check['parts'], key=lambda p: -p['ms'])
        for part in ranked:
            for cause in part['causes']:
                if cause in check['dominant']:
                    return cause
        return check['dominant'][0] if check['dominant'] else check['kind']


def labelled_in(folder):
    """All ends of all labelled experiments below a folder."""
    found = []
    for label in sorted(glob.glob(os.path.join(folder, '*', 'label.json'))):
        with open(label, encoding='utf8') as f:
            said = json.load(f)
        ends = said['truth']['captures']
        found += [Labelled(os.path.dirname(label), end, truth, said) for end, truth in sorted(ends.items())]
    return found


def sets(which):
    """[(name, folder)] of the sets there are: 'bundled', 'shared', or 'all' for both."""
    found = []
    if which in ('bundled', 'all'):
        found.append(('bundled', os.path.join(ROOT, 'captures')))
    if which in ('shared', 'all') and os.path.isdir(os.path.join(SHARED, 'captures')):
        found.append(('shared', os.path.join(SHARED, 'captures')))
    return found


def leave(status):
    """Ends this program without finalising it: threads of Arrow abort an interpreter that is finalised, one time in some hundred
    (apache/arrow issues 34314 and 36980)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def shown(path):
    """A path as short as can be."""
    short = os.path.relpath(path, ROOT)
    return path if short.startswith('../..') else short


def overlap(jobs):
    """How many programs to run at once."""
    return jobs or os.cpu_count() or 1


def answered(jobs, asked, answer, failed):
    """Each (case, what) of `asked` with `answer(case, what)`, several at once and in their order; `failed` gets those without."""
    with concurrent.futures.ThreadPoolExecutor(overlap(jobs)) as pool:
        waiting = [(case, what, pool.submit(answer, case, what)) for case, what in asked]
        for case, what, future in waiting:
            try:
                said = future.result()
            except Failed as error:
                failed.append(f'{case} {what}: {error}')
                continue
            yield case, what, said
