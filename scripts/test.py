#!/usr/bin/env python3
"""`make test`: runs every check, prints what failed, and at the end one line: N passed, N failed[, N skipped].

    scripts/test.py [--only REGEX] [--list]

Each check is a command; its output goes to target/test-logs/ and to the screen if it fails. A check that cannot run here
prints SKIP with the reason. With CI=true a skip counts as failed, unless ALLOWED_SKIPS names the check; and where
../shared exists the checks on the full sets must have run.
"""

import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
import time

import again
import common
import samples

CI = os.environ.get('CI', '').lower() in ('1', 'true', 'yes')
TARGET = os.path.dirname(os.path.dirname(common.BINARY))
LOGS = os.path.join(TARGET, 'test-logs')
# what tests of cargo could not do: a file for each package, a line for each skip (tests/skips.rs)
SKIPS = os.path.join(TARGET, 'test-skips')
HERE = os.path.join(common.ROOT, '..', 'shared', 'captures')
# a clone by itself has no full sets; whether they should be there is checked on its own
ALLOWED_SKIPS = re.compile(r'^full sets: ')

# what the answers must reach, on the bundled captures and on the full set alike
ACCURACY = (
    '--min-dominant-client 0.95 --min-dominant-server 0.90 --min-ms 0.85 --min-clean 1 --max-forbidden 4 '
    '--max-wrong 2 --max-unexplained 0.01 --max-failed 0'
)
# nothing is lost: at most three points less; packets or bytes are gone: it may say less, never something else
SAME = '--min-dominant-client 0.92 --min-dominant-server 0.87 --min-ms 0.82 --max-failed 0'
LESS = '--max-wrong 4 --max-failed 0'
TRANSFORMS = [
    ('addresses+ipv6+vlan+microseconds+pcapng', SAME),
    ('no-timestamps', SAME),
    ('skip', LESS),
    ('drop', LESS),
    ('snaplen', LESS),
    ('gro', LESS),
]


# one of each kind; every run is judged at both ends
LAB_CELLS = [
    'nagle-both-rtt20-2',
    'nagle-fixed-rtt20-2',
    'nagle-request-rtt1-2',
    'cork-rtt20-2',
    'server-think-rtt20-2',
    'client-pause-rtt20-2',
    'slow-start-rtt100-1',
    'slow-start-up-rtt20-2',
    'idle-restart-rtt20-1',
    'send-buffer-rtt20-1',
    'receive-window-rtt20-2',
    'receive-window-up-rtt20-1',
    'reader-stops-rtt20-1',
    'loss-last-rtt20-2',
    'loss-request-rtt20-1',
    'loss-syn-rtt20-1',
    'loss-random-up-rtt20-3',
    'bandwidth-rtt1-2',
    'bandwidth-up-rtt20-1',
    'accept-queue-rtt20-1',
]
LAB = '--min-dominant 0.95 --min-ms 0.80 --min-clean 0.85 --max-wrong 1 --max-failed 0 --max-unexplained 0.01'

# what begins work for processors that other checks leave unused (not 19: threads of the lab in the idle class would take a sixth)
LEFT = 'nice -n 15'
# the rows: where such work is done one after the other, and where tests are that wait for links most of their time
SPARE, WAITING = 'spare', 'waiting'
TESTS_BUILT = 'tests are built'
# documentation without warnings
STRICT = {'RUSTDOCFLAGS': '-D warnings'}
GIT = ['git', os.path.join(common.ROOT, '.git')]
# exit code of a check that cannot run here; its last line says why (EX_TEMPFAIL of sysexits.h)
CANNOT = 75


class Skip(Exception):
    """This check cannot run here; the text says why."""


class Check:
    """A name, what to run (argument list, or a function that gives the exit code), how much to show; `timed`: it holds programs
    and timers to the clock, so that other work disturbs it, and is done once more if it fails. `row`: it is done beside the
    others, after those before it in its row, and is waited for at its place."""

    def __init__(self, name, action, needs=(), show=1, environment=None, timed=False, row=None, after=None):
        self.name, self.needs, self.show, self.environment, self.timed = name, needs, show, environment or {}, timed
        self.row, self.after = row, after
        self.action = shlex.split(action) if isinstance(action, str) else action


def of_the_project():
    """Checks of the sources and of the scripts themselves: they take no program."""
    ruff = os.path.join(TARGET, 'tools', 'bin', 'ruff')

    def script(name, arguments=''):
        return f'{shlex.quote(sys.executable)} {name} {arguments}'

    return [
        Check('format', 'cargo fmt --all --check'),
        Check('scripts compile', compile_scripts),
        Check('scripts: format', [ruff, 'format', '--check'], [ruff]),
        Check('scripts: lints', [ruff, 'check'], [ruff]),
        Check('scripts/structure', script('scripts/structure.py', '--self-test')),
        Check('structure', script('scripts/structure.py')),
        Check('scripts/again', script('scripts/again.py', '--self-test')),
        Check('scripts/transform', script('scripts/transform.py', '--self-test'), ['zstd']),
        Check('scripts/check_json', script('scripts/check_json.py', '--self-test')),
        Check('scripts/check_counts', script('scripts/check_counts.py', '--self-test')),
        Check('scripts/accuracy', script('scripts/accuracy.py', '--self-test')),
        Check('scripts/cases', script('scripts/cases.py', '--self-test')),
        Check('scripts/weak_claims', script('scripts/weak_claims.py', '--self-test')),
        Check('scripts/meaning', script('scripts/meaning.py', '--self-test')),
        Check('scripts/advisories', script('scripts/advisories.py', '--self-test')),
        Check('scripts/alone', script('scripts/alone.py', '--self-test')),
        Check('scripts/mutants', script('scripts/mutants.py', '--check'), show=1),
    ]


def checks(binary):
    """Everything, the cheap ones first."""
    python = shlex.quote(sys.executable)
    debug = os.path.join(TARGET, 'debug', 'tcpwhy')
    tools = os.path.join(TARGET, 'tools', 'bin', 'python')

    def script(name, arguments=''):
        return f'{python} {name} {arguments}'

    out = [
        *of_the_project(),
        Check('build', 'cargo build --release --locked', show=0),
        Check('instructions per packet', script('scripts/instructions.py', f'--bin {binary}'), show=3),
        Check('demo', script('tests/demo_test.py', f'--bin {binary}'), show=0),
        Check('write-write-read', script('tests/write_write_read.py', f'--bin {binary}'), ['zstd'], show=6),
        Check('names of exchanges', script('tests/names_test.py', f'--bin {binary}'), ['tshark'], show=1),
        Check('Wireshark plugin', script('tests/wireshark_test.py', f'--bin {binary}'), ['tshark'], show=1),
        *(
            Check(f'run and {suite}', script('tests/suites_test.py', f'--bin {binary} {suite}'), show=1, timed=True)
            for suite in ('pytest', 'node', 'cargo', 'go', 'junit')
        ),
        Check('scripts/watch_scenarios', script('scripts/watch_scenarios.py', '--self-test')),
        Check('watch leaves nothing behind', script('scripts/watch_costs.py', f'--bin {binary} --left-behind'), show=1),
        Check('watch in tmux', script('tests/watch_screen_test.py', f'--bin {binary}'), ['tmux'], show=6, timed=True),
        Check('Prometheus', script('tests/metrics_test.py', f'--bin {binary}'), ['prometheus'], show=1, timed=True),
        Check('assistants', f'{tools} tests/mcp_test.py --bin {binary}', [tools], show=1),
        Check('traces and flame graphs', f'{tools} tests/exports_test.py --bin {binary}', [tools], show=1),
        Check('many captures: a sample', script('scripts/many.py', f'--bin {binary} --sample'), show=3),
        Check('tables and engines', f'{tools} tests/tables_test.py --bin {binary}', [tools], show=1),
        Check('tables of a running host', f'{tools} tests/watch_tables_test.py --bin {binary}', [tools], show=1),
        Check('README', script('scripts/docs.py', f'--bin {binary} --check')),
        Check('third-party notices', script('scripts/third_party.py', 'check')),
        Check('packages', f'{tools} scripts/package.py check --bin {binary}', [tools], show=1),
        Check('figures', script('scripts/figures.py', f'--bin {binary} --check')),
        Check('growth: its drawing', script('scripts/growth.py', 'check'), show=1),
        Check('one source of figures', script('scripts/one_source.py', f'--bin {binary}'), show=1),
        Check('model', script('scripts/model_check.py', f'--bin {binary}')),
        Check('model: fixes', script('scripts/model_fixes.py', f'--bin {binary}'), show=4),
        Check('model: flights', script('scripts/model_flights.py', f'--bin {binary}'), ['zstd'], show=1),
        Check('web: style', script('scripts/web.py', 'style'), show=1),
        Check('BPF: the object is fresh', script('scripts/bpf.py', 'check')),
        Check('web: the page is fresh', script('scripts/web.py', 'check'), show=1),
        Check('web: browser', script('scripts/web.py', f'test --bin {binary}'), show=12, timed=True),
        Check('web: beside tcptrace and Wireshark', script('scripts/graphs.py', f'--bin {binary}'), show=1),
        *on_captures(binary),
        Check('made cases: a sample', samples.made_cases, show=3),
        Check('tshark finds the evidence', samples.tshark_finds_the_evidence, ['tshark'], show=1),
        Check(
            'mutations of a real answer',
            script(
                'scripts/check_json.py',
                f'--bin {binary} --self-test captures/zeek__smtp_bdat.pcap '
                'captures/lab/fresh_mtu1500/cap.client.pcap.zst',
            ),
            ['zstd', 'tshark'],
            show=3,
        ),
        Check('a planted cause is missed', script('scripts/planted_cause.py')),
        Check('notebook: its form', script('scripts/notebook.py', 'check'), show=1),
    ]
    # of what cargo builds in one folder: before the tests are built, nothing else of it goes on
    return [
        *out,
        Check('lints', f'{LEFT} cargo clippy --workspace --all-targets --locked -- -D warnings', show=0, row=SPARE),
        Check('documentation', f'{LEFT} cargo doc --workspace --no-deps --locked', (), 0, STRICT, row=SPARE),
        Check(
            'what `make demo` builds', f'{LEFT} cargo check -p tcpwhy --no-default-features --locked', show=0, row=SPARE
        ),
        Check(TESTS_BUILT, f'{LEFT} cargo test --workspace --locked --no-run', show=0, row=SPARE),
        Check('interface of the library', script('scripts/api.py', 'check'), show=1),
        Check('cargo test', again.other_tests, show=1),
        # after the tests, which build the program with debug assertions: only that one panics when asked to
        Check(
            'view in tmux',
            script('tests/view_test.py', f'--bin {binary} --debug-bin {debug}'),
            ['tmux', debug],
            show=5,
            timed=True,
        ),
        Check('cargo test: the lab', again.lab_tests, show=1, timed=True, row=WAITING, after=TESTS_BUILT),
        Check('cargo test: watch', again.watch_tests, show=1, timed=True),
        Check('fuzz targets are built', f'{LEFT} fuzz/run.sh --build', show=0, row=SPARE),
        Check('fuzz', f'{LEFT} fuzz/run.sh 10', [os.path.join(common.ROOT, 'fuzz', 'run.sh')], show=8, row=SPARE),
        Check('a clone by itself', f'{LEFT} {script("scripts/alone.py", f"--bin {debug} {ACCURACY}")}', GIT, row=SPARE),
        Check('lab matrix', lab_matrix, ['ip', '/dev/net/tun'], show=40, timed=True),
        Check('record beside the lab', record_sample(binary), ['ip', '/dev/net/tun'], show=8, timed=True),
    ]


def on_captures(binary):
    """What is said of captures with reference results or labels: of those that are bundled, and of the full sets."""
    out = []

    def script(name, arguments):
        return f'{shlex.quote(sys.executable)} {name} {arguments}'

    for name, which in (('bundled', 'bundled'), ('full sets', 'shared')):
        full = [] if which == 'bundled' else [HERE]
        zstd = ['zstd', *full]
        out += [
            Check(f'{name}: answers', script('scripts/check_json.py', f'--bin {binary} --set {which}'), zstd),
            Check(f'{name}: counts', script('scripts/check_counts.py', f'--bin {binary} --set {which}'), full),
            Check(
                f'{name}: accuracy',
                script('scripts/accuracy.py', f'--bin {binary} --set {which} {ACCURACY}'),
                zstd,
                show=60,
            ),
        ]
        out += [
            Check(
                f'{name}: accuracy after {steps}',
                script('scripts/accuracy.py', f'--bin {binary} --set {which} --quiet --transform {steps} {limits}'),
                zstd,
            )
            for steps, limits in TRANSFORMS
        ]
    return out


class Beside:
    """Does the checks of the rows beside the others, those of one row one after the other: most of the others take one core, or
    wait."""

    def __init__(self, chosen):
        self.done = {check.name: threading.Event() for check in chosen if check.row}
        self.result = {}
        for row in (SPARE, WAITING):
            threading.Thread(target=self.work, args=([c for c in chosen if c.row == row],), daemon=True).start()

    def work(self, checks_of_row):
        """One row."""
        for check in checks_of_row:
            if check.after in self.done:
                self.done[check.after].wait()
            try:
                self.result[check.name] = measured(check)
            except Exception as error:  # raised where it is waited for
                self.result[check.name] = error
            self.done[check.name].set()

    def wait(self, name):
        """The exit code, and what it took; Skip: it cannot run here."""
        self.done[name].wait()
        if isinstance(self.result[name], Exception):
            raise self.result[name]
        return self.result[name]


def record_sample(binary):
    """Some runs of the lab with a recorder on each host: what it tells is right."""
    runs = [word for run in ('cork-rtt20-2', 'reader-slow-rtt20-2', 'sender-pause-rtt20-1') for word in ('--only', run)]
    folder = os.path.join(TARGET, 'record-sample')
    limits = ['--min-dominant', '1', '--max-wrong', '0']
    command = [sys.executable, 'scripts/accuracy_record.py', '--bin', binary, '--fresh', '--quiet', '--folder', folder]
    return [*command, *runs, *limits]


def compile_scripts(log):
    """All Python files parse."""
    bad = 0
    for folder in ('scripts', 'scripts/synth', 'scripts/families', 'tests'):
        for name in sorted(os.listdir(os.path.join(common.ROOT, folder))):
            if name.endswith('.py'):
                with open(os.path.join(common.ROOT, folder, name), encoding='utf8') as f:
                    try:
                        compile(f.read(), name, 'exec')
                    except SyntaxError as error:
                        bad += 1
                        log.write(f'{folder}/{name}: {error}\n')
    return bad


def lab_matrix(log):
    """A part of the lab's matrix is made on this kernel, and the program must agree with the labels told from the truth."""
    if os.geteuid() != 0:
        raise Skip('the lab needs root')
    with tempfile.TemporaryDirectory() as folder:
        only = [word for name in LAB_CELLS for word in ('--only', name)]
        judged = [sys.executable, 'scripts/accuracy.py', '--bin', common.BINARY, '--folder', folder, *LAB.split()]
        return again.run_all([[common.BINARY, 'lab', 'dataset', folder, *only], judged], log)


def run(check, log_path):
    """The exit code of a check. Skip: something that it needs is not here."""
    for need in check.needs:
        if os.sep in need:
            if not os.path.exists(need):
                raise Skip(f'{os.path.relpath(need, common.ROOT)} is not here')
        elif not common.have(need):
            raise Skip(f'{need} is not installed')
    with open(log_path, 'w', encoding='utf8') as log:
        if callable(check.action):
            return check.action(log)
        if not common.have(check.action[0]) and os.sep not in check.action[0]:
            raise Skip(f'{check.action[0]} is not installed')
        code = again.call(check.action, log, environment={**os.environ, **check.environment})
    if code == CANNOT:
        raise Skip(again.tail(log_path, 1).strip())
    return code


def measured(check):
    """The exit code of a check, and what it took: seconds, and how many of them of one processor."""
    started, before = time.monotonic(), getattr(again.SPENT, 'seconds', 0)
    code = run(check, log_of(check.name))
    return code, (time.monotonic() - started, getattr(again.SPENT, 'seconds', 0) - before)


def skips_of_tests():
    """What the tests that have just run said they could not do, each once; the files are gone afterwards."""
    found = []
    for name in sorted(os.listdir(SKIPS)) if os.path.isdir(SKIPS) else []:
        with open(os.path.join(SKIPS, name), encoding='utf8', errors='replace') as f:
            found += [f'{name.removesuffix(".txt")}: {line.strip()}' for line in f if line.strip()]
    shutil.rmtree(SKIPS, ignore_errors=True)
    return list(dict.fromkeys(found))


def log_of(name):
    """Where the output of a check of this name goes."""
    return os.path.join(LOGS, re.sub(r'\W+', '-', name) + '.log')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default='', help='regular expression on the names of checks')
    parser.add_argument('--list', action='store_true')
    args = parser.parse_args()
    known = checks(common.BINARY)
    chosen = [c for c in known if re.search(args.only, c.name)]
    if args.list:
        print('\n'.join(c.name for c in chosen))
        return 0
    shutil.rmtree(LOGS, ignore_errors=True)
    os.makedirs(LOGS)
    if CI:
        # what is built once needs no notes for the next time, and a panic says its place without tables of lines
        os.environ.setdefault('CARGO_INCREMENTAL', '0')
        os.environ.setdefault('CARGO_PROFILE_DEV_DEBUG', 'false')
    shutil.rmtree(SKIPS, ignore_errors=True)
    passed, failed, skipped, again_too = [], [], [], []
    beside = Beside(chosen)
    for check in chosen:
        log = log_of(check.name)
        try:
            code, took = beside.wait(check.name) if check.row else measured(check)
            if code and check.timed:
                print(f'again: {check.name} failed the first time\n{again.heart(log)}', end='', flush=True)
                again_too.append(check.name)
                code, took = measured(check)
        except Skip as reason:
            bad = CI and (not ALLOWED_SKIPS.search(check.name) or os.path.isdir(HERE))
            (failed if bad else skipped).append(check.name)
            print(f'SKIP: {check.name}: {reason}' + (' (counts as failed under CI)' if bad else ''), flush=True)
            continue
        (failed if code else passed).append(check.name)
        used = f', {took[1]:.1f} of a processor' if took[1] else ''  # not known where it is no command
        print(f'{"FAIL" if code else "ok  "} {check.name} ({took[0]:.1f} s{used})', flush=True)
        print(again.heart(log) + again.tail(log, 60) if code else again.tail(log, check.show), end='', flush=True)
        for skip in skips_of_tests():
            (failed if CI else skipped).append(skip.split(': ')[0] + ' test')
            print(f'SKIP: {skip}' + (' (counts as failed under CI)' if CI else ''), flush=True)
    if failed:
        print(f'\nfailed: {", ".join(failed)}; logs in {common.shown(LOGS)}')
        for name in failed:
            print(f'{name}:\n{again.heart(log_of(name), again.AFTER)}', end='')
    if again_too:
        print(f'done twice, the first time disturbed or at fault: {", ".join(again_too)}')
    print(f'{len(passed)} passed, {len(failed)} failed' + (f', {len(skipped)} skipped' if skipped else ''))
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
