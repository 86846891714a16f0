#!/usr/bin/env python3
"""How many small faults the tests of a crate find: `make mutants`.

    scripts/mutants.py [--crate NAME]... [--sample N] [--limit N] [--only ID]... [--jobs N] [--survivors] [--fresh]
    scripts/mutants.py --since COMMIT --sample N [--seed TEXT]     a sample of the lines that were changed since then
    scripts/mutants.py --check     the lists apply to the source as it stands (part of `make test`; runs no mutant)
    scripts/mutants.py --list      the sample, without running it

The faults are those that cargo-mutants lists (`cargo install --locked cargo-mutants`): an operator turned, an arm of a match
or a guard left out, a function that gives a constant. A sample is drawn from them by a fixed seed, from each crate in
proportion to its lines; beside it stand the mutations of scripts/mutants_named.json, which were chosen by hand because each
turns a rule, a threshold or a sentence into a wrong one.

Each is applied to a copy of the tree, and the tests of the crate it is in are run: no other crate's. A mutant that none of them
notices survives. Survivors are listed in scripts/mutants_survivors.json. A reason there that begins with "equivalent: " and goes
on with a proof takes a mutant out of the count; one without a proof does not.

What was found out is kept in target/mutants/results.json, so that a run can be interrupted; a later one goes on. A result counts
as long as the source of the crate and its tests are the same; with --survivors kills of an earlier state are taken over, and only
what survived, or was never tried, is run.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import time

import common

SEED = 'tcpwhy mutants 1'
CRATES = ('analysis', 'report', 'model')
SAMPLE = 240
NAMED = os.path.join(common.ROOT, 'scripts', 'mutants_named.json')
SURVIVORS = os.path.join(common.ROOT, 'scripts', 'mutants_survivors.json')
WORK = os.path.join(os.path.dirname(os.path.dirname(common.BINARY)), 'mutants')
RESULTS = os.path.join(WORK, 'results.json')
# a proof is an argument, not a word
LEAST_PROOF = 40


class Stop(Exception):
    """Said to the user, without a trace."""


def sources(crate):
    """The Rust files of a crate that are not tests, as paths from the root."""
    out = []
    for folder, _, names in sorted(os.walk(os.path.join(common.ROOT, 'crates', crate, 'src'))):
        out += [os.path.relpath(os.path.join(folder, n), common.ROOT) for n in sorted(names) if n.endswith('.rs')]
    return out


def read(path):
    with open(os.path.join(common.ROOT, path), encoding='utf8') as f:
        return f.read()


def digest(*parts):
    return hashlib.sha256('\0'.join(parts).encode()).hexdigest()


def fingerprint(crate):
    """Of all that decides whether a mutant of the crate is found: the sources of all crates, and the crate's tests."""
    known = hashlib.sha256()
    for folder in (
        *(f'crates/{c}/src' for c in sorted(os.listdir(os.path.join(common.ROOT, 'crates')))),
        f'crates/{crate}/tests',
    ):
        for where, folders, names in os.walk(os.path.join(common.ROOT, folder)):
            folders.sort()
            for name in sorted(names):
                with open(os.path.join(where, name), 'rb') as f:
                    known.update(name.encode() + b'\0' + f.read())
    return known.hexdigest()[:16]


def listed(crate, since=None):
    """The mutants of cargo-mutants, of all lines or of those changed since a commit. An id is made of the function and the line
    that is changed, not of the file or of numbers of lines: it survives that code is moved."""
    command = ['cargo', 'mutants', '--list', '--json', '--diff', '-p', f'tcpwhy-{crate}']
    if since:
        os.makedirs(WORK, exist_ok=True)
        changed = os.path.join(WORK, 'since.diff')
        with open(changed, 'wb') as f:
            subprocess.run(['git', 'diff', since, '--', f'crates/{crate}/src'], cwd=common.ROOT, stdout=f, check=True)
        command += ['--in-diff', changed]
    done = subprocess.run(command, cwd=common.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Stop(f'cargo mutants does not list: {done.stderr.strip()[-300:]}\ncargo install --locked cargo-mutants')
    out, seen = [], {}
    for m in json.loads(done.stdout):
        name = re.sub(r'^\S+:\d+:\d+: ', '', m['name'])
        line = read(m['file']).splitlines()[m['span']['start']['line'] - 1].strip()
        key = digest(crate, name, line)
        # the same change twice in one line, or in two such lines of one function
        seen[key] = seen.get(key, 0) + 1
        out.append(
            {
                'id': digest(key, str(seen[key]))[:8],
                'crate': crate,
                'name': name,
                'line': line,
                'file': m['file'],
                'diff': m['diff'],
            }
        )
    return out


def sample(mutants, n, seed=SEED):
    """The first n by a hash of seed and id: a mutant that is drawn stays drawn, whatever is added."""
    return sorted(mutants, key=lambda m: digest(seed, m['id']))[:n]


def lines(crate):
    """Lines of code: neither blank nor comment."""
    text = '\n'.join(read(p) for p in sources(crate))
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith('//'))


def shares(size):
    """How many mutants of the sample each crate has."""
    code = {c: lines(c) for c in CRATES}
    return {c: round(size * code[c] / sum(code.values())) for c in CRATES}


def named(crates):
    """The mutations chosen by hand: a pattern that stands just once in the sources of the crate, and what replaces it."""
    with open(NAMED, encoding='utf8') as f:
        rows = json.load(f)
    wrong, out = [], []
    for row in rows:
        if row['crate'] not in crates:
            continue
        pattern = re.compile(row['find'], re.S)
        hits = [(path, m) for path in sources(row['crate']) for m in pattern.finditer(read(path))]
        if len(hits) != 1:
            wrong.append(f'{row["id"]} ({row["what"]}): {len(hits)} places for {row["find"]}')
            continue
        path, m = hits[0]
        changed = m.expand(row['replace'])
        if changed == m.group(0):
            wrong.append(f'{row["id"]}: nothing changes')
        out.append(
            {
                'id': row['id'],
                'crate': row['crate'],
                'name': row['what'],
                'line': m.group(0).split('\n')[0].strip(),
                'file': path,
                'edit': (m.start(), m.end(), changed),
            }
        )
    if wrong:
        raise Stop(
            'scripts/mutants_named.json no longer fits the source; find the place anew:\n  ' + '\n  '.join(wrong)
        )
    return out


def mutated(mutant, text):
    """The text of the file with the mutant in it."""
    if 'edit' in mutant:
        start, end, changed = mutant['edit']
        return text[:start] + changed + text[end:]
    rows = text.split('\n')
    shift = 0
    body = mutant['diff'].split('\n')[2:]
    i = 0
    while i < len(body):
        head = re.match(r'@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@', body[i])
        i += 1
        if not head:
            continue
        at, old, new = int(head.group(1)) - 1 + shift, [], []
        while i < len(body) and not body[i].startswith('@@'):
            sign, rest = body[i][:1], body[i][1:]
            i += 1
            if sign in (' ', '-'):
                old.append(rest)
            if sign in (' ', '+'):
                new.append(rest)
        if rows[at : at + len(old)] != old:
            raise Stop(f'{mutant["id"]} does not apply to {mutant["file"]}')
        rows[at : at + len(old)] = new
        shift += len(new) - len(old)
    return '\n'.join(rows)


class Bench:
    """A copy of the tree with its own target directory, in which one mutant after the other is tried."""

    def __init__(self, number):
        self.tree = os.path.join(WORK, f'tree-{number}')
        self.target = os.path.join(WORK, f'target-{number}')
        self.times = {}
        self.environment = dict(
            os.environ,
            CARGO_TARGET_DIR=self.target,
            CARGO_PROFILE_DEV_DEBUG='0',
            CARGO_PROFILE_TEST_DEBUG='0',
            CARGO_INCREMENTAL='1',
            CARGO_TERM_COLOR='never',
            RUST_BACKTRACE='0',
        )
        os.makedirs(self.tree, exist_ok=True)
        files = (
            subprocess.run(
                ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
                cwd=common.ROOT,
                capture_output=True,
                check=True,
            )
            .stdout.decode()
            .split('\0')
        )
        for name in filter(None, files):
            source, to = os.path.join(common.ROOT, name), os.path.join(self.tree, name)
            if os.path.isfile(source) and not same(source, to):
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copyfile(source, to)
        for folder, _, names in os.walk(os.path.join(self.tree, 'crates')):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.exists(os.path.join(common.ROOT, os.path.relpath(path, self.tree))):
                    os.remove(path)

    def run(self, arguments, timeout):
        """Exit code (None: it took too long) and what was said."""
        with subprocess.Popen(
            ['cargo', 'test', '--locked', '--quiet', *arguments],
            cwd=self.tree,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=timeout)
                return process.returncode, said
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.communicate()
                return None, ''

    def baseline(self, crate):
        """The tests of the crate pass without a mutant; how long each of them takes."""
        if crate in self.times:
            return self.times[crate]
        folder = os.path.join(self.tree, 'crates', crate, 'tests')
        names = sorted(n[:-3] for n in os.listdir(folder) if n.endswith('.rs')) if os.path.isdir(folder) else []
        names += sorted(
            n
            for n in (os.listdir(folder) if os.path.isdir(folder) else [])
            if os.path.exists(os.path.join(folder, n, 'main.rs'))
        )
        targets = [['--lib'], *(['--test', n] for n in names)]
        code, said = self.run(['-p', f'tcpwhy-{crate}', '--lib', '--tests', '--no-run'], 3600)
        if code != 0:
            raise Stop(f'the tests of {crate} do not build:\n{said[-2000:]}')
        times = []
        for target in targets:
            start = time.monotonic()
            code, said = self.run(['-p', f'tcpwhy-{crate}', *target], 1800)
            if code != 0:
                raise Stop(f'the tests of {crate} fail without any mutant ({" ".join(target)}):\n{said[-2000:]}')
            times.append((time.monotonic() - start, target))
        self.times[crate] = sorted(times)
        return self.times[crate]

    def outcome(self, mutant):
        """killed, timeout, unviable or survived; the test that found it."""
        path = os.path.join(self.tree, mutant['file'])
        shutil.copyfile(path, path + '.orig')
        try:
            # of the copy: the tree itself may be worked on meanwhile
            with open(path + '.orig', encoding='utf8') as f:
                text = mutated(mutant, f.read())
            with open(path, 'w', encoding='utf8') as f:
                f.write(text)
            code, _ = self.run(['-p', f'tcpwhy-{mutant["crate"]}', '--lib', '--no-run'], 1800)
            if code != 0:
                return 'unviable', ''
            # the quick ones first: most mutants die in them
            for took, target in self.baseline(mutant['crate']):
                code, said = self.run(['-p', f'tcpwhy-{mutant["crate"]}', *target], 300 + 10 * took)
                if code is None:
                    return 'timeout', target[-1]
                if code != 0:
                    failed = re.search(r'^    (\S+)$', said, re.M)
                    return 'killed', f'{target[-1]} {failed.group(1) if failed else ""}'.strip()
            return 'survived', ''
        finally:
            os.replace(path + '.orig', path)
            os.utime(path)


def same(a, b):
    if not os.path.exists(b) or os.path.getsize(a) != os.path.getsize(b):
        return False
    with open(a, 'rb') as x, open(b, 'rb') as y:
        return x.read() == y.read()


def load(path, otherwise):
    if not os.path.exists(path):
        return otherwise
    with open(path, encoding='utf8') as f:
        return json.load(f)


def store(path, value):
    with open(path + '.new', 'w', encoding='utf8') as f:
        json.dump(value, f, indent=1, ensure_ascii=False)
        f.write('\n')
    os.replace(path + '.new', path)


def proven(row):
    """The reason is a proof that no test can tell the mutant from the program."""
    reason = row.get('reason', '')
    return reason.startswith('equivalent: ') and len(reason) >= len('equivalent: ') + LEAST_PROOF


def check():
    """The lists apply."""
    rows = named(CRATES)
    for mutant in rows:
        mutated(mutant, read(mutant['file']))
    survivors = load(SURVIVORS, [])
    for row in survivors:
        missing = {'id', 'crate', 'name', 'line', 'reason'} - set(row)
        if missing:
            raise Stop(f'{SURVIVORS}: {row.get("id")} lacks {", ".join(sorted(missing))}')
        if row['reason'] and not proven(row):
            raise Stop(f'{row["id"]}: a reason is "equivalent: " and a proof of at least {LEAST_PROOF} characters')
    print(
        f'{len(rows)} named mutations apply; {len(survivors)} survivors are listed, '
        f'{sum(map(proven, survivors))} of them proven equivalent'
    )


def chosen(arguments):
    """What is to be run, in order: the named ones, then the sample."""
    crates = arguments.crate or CRATES
    if arguments.since:
        changed = [m for crate in crates for m in listed(crate, arguments.since)]
        out = sorted(sample(changed, arguments.sample, arguments.seed), key=lambda m: CRATES.index(m['crate']))
    else:
        out = named(crates)
        share = shares(arguments.sample)
        for crate in crates:
            out += sample(listed(crate), share[crate], arguments.seed)
    if arguments.only:
        out = [m for m in out if m['id'] in arguments.only]
        missing = set(arguments.only) - {m['id'] for m in out}
        if missing:
            raise Stop(f'not in the sample: {", ".join(sorted(missing))}')
    return out


def try_all(todo, results, prints, benches):
    """Tries mutants on the benches; stores each outcome at once."""
    jobs = benches.qsize()

    def one(mutant):
        bench = benches.get()
        try:
            start = time.monotonic()
            bench.baseline(mutant['crate'])
            outcome, by = bench.outcome(mutant)
            return mutant, outcome, by, time.monotonic() - start
        finally:
            benches.put(bench)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for n, (mutant, outcome, by, took) in enumerate(pool.map(one, todo), 1):
            results[mutant['id']] = {'outcome': outcome, 'by': by, 'state': prints[mutant['crate']]}
            store(RESULTS, results)
            print(
                f'{n}/{len(todo)} {mutant["id"]} {outcome:8} {took:4.0f} s  {mutant["name"]} | {mutant["line"]} {by}',
                flush=True,
            )


def report(mutants, results, survivors):
    """Figures by crate."""
    reasons = {row['id']: row for row in survivors}
    for crate in CRATES:
        known = [(m, results[m['id']]['outcome']) for m in mutants if m['crate'] == crate and m['id'] in results]
        if not known:
            continue
        killed = sum(o in ('killed', 'timeout') for _, o in known)
        alive = [m for m, o in known if o == 'survived']
        equivalent = sum(proven(reasons.get(m['id'], {})) for m in alive)
        counted = killed + len(alive) - equivalent
        print(
            f'{crate}: {killed} of {counted} killed ({100 * killed / max(counted, 1):.1f} %), '
            f'{len(alive) - equivalent} survive, {equivalent} proven equivalent, '
            f'{sum(o == "unviable" for _, o in known)} do not compile, '
            f'{sum(m["crate"] == crate for m in mutants) - len(known)} not tried'
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--crate', action='append', choices=CRATES, help='mutants of this crate only')
    parser.add_argument('--sample', type=int, default=SAMPLE, help='how many are drawn over all crates (%(default)s)')
    parser.add_argument('--limit', type=int, help='try at most so many now')
    parser.add_argument('--only', action='append', metavar='ID', help='try this one, whatever is known of it')
    parser.add_argument('--since', metavar='COMMIT', help='only of lines changed since, and none of the named ones')
    parser.add_argument('--seed', default=SEED, help='by which the sample is drawn (%(default)s)')
    parser.add_argument('--jobs', type=int, default=1, help='so many at once (%(default)s)')
    parser.add_argument('--survivors', action='store_true', help='take kills over from an earlier state')
    parser.add_argument('--fresh', action='store_true', help='forget earlier results')
    parser.add_argument('--check', action='store_true', help='only see whether the lists apply')
    parser.add_argument('--list', action='store_true', help='only print the sample')
    arguments = parser.parse_args()
    if arguments.check:
        check()
        return
    benches = queue.Queue()
    if not arguments.list:
        os.nice(10)
        os.makedirs(WORK, exist_ok=True)
        for n in range(max(1, arguments.jobs)):
            benches.put(Bench(n))
    mutants = chosen(arguments)
    if arguments.list:
        for m in mutants:
            print(f'{m["id"]} {m["crate"]} {m["file"]}: {m["name"]} | {m["line"]}')
        return
    results = {} if arguments.fresh else load(RESULTS, {})
    prints = {c: fingerprint(c) for c in CRATES}

    def known(m):
        r = results.get(m['id'])
        return (
            r
            and not arguments.only
            and (r['state'] == prints[m['crate']] or arguments.survivors and r['outcome'] != 'survived')
        )

    todo = [m for m in mutants if not known(m)][: arguments.limit]
    print(f'{len(mutants)} mutants, {len(todo)} to try', flush=True)
    try_all(todo, results, prints, benches)
    survivors = load(SURVIVORS, [])
    # an outcome of another state says nothing about this one
    only, arguments.only = arguments.only, None
    valid = {m['id']: results[m['id']] for m in mutants if known(m)}
    tried = set(valid)
    alive = {m['id']: m for m in mutants if valid.get(m['id'], {}).get('outcome') == 'survived'}
    reasons = {row['id']: row['reason'] for row in survivors}
    crates = arguments.crate or CRATES
    whole = not only and not arguments.since and arguments.seed == SEED
    drawn = {m['id'] for m in mutants} if whole else None
    # of the whole sample, what is no longer in it is gone
    kept = [
        row
        for row in survivors
        if row['id'] not in tried and (row['crate'] not in crates or drawn is None or row['id'] in drawn)
    ]
    kept += [
        {'id': i, 'crate': m['crate'], 'name': m['name'], 'line': m['line'], 'reason': reasons.get(i, '')}
        for i, m in alive.items()
    ]
    store(SURVIVORS, sorted(kept, key=lambda row: (row['crate'], row['name'], row['line'], row['id'])))
    report(mutants, valid, kept)


if __name__ == '__main__':
    try:
        main()
    except Stop as stop:
        sys.exit(f'mutants: {stop}')
    except KeyboardInterrupt:
        sys.exit(130)
