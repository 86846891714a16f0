#!/usr/bin/env python3
"""What a log says about failures, and tests that failed beside others, once more by themselves.

The tests of the workspace run side by side and many of them hold the kernel's own timers to their rules: what fails while
other tests load the machine and passes alone was disturbed, what fails alone is a fault. Both are told; more failures than
MOST are no disturbance, and nothing is tried again.

    again.py LOG            what of a log of `cargo test --no-fail-fast` would be tried again
    again.py --self-test
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading

import common

MOST = 6
FAILED = re.compile(r'^test (\S+) .*\.\.\. FAILED$', re.M)
TARGET = re.compile(r'^\s*`(-p [^`]+)`$', re.M)


# one that ran: cargo says by its exit code that none failed, and a test may write to the terminal before `ok` follows its name
RAN = re.compile(r'^test (\S+) .*?\.\.\. (?!ignored)', re.M)


def failed_tests(text):
    """(arguments of cargo test for a target that failed, names of tests that failed in any), from a log."""
    return TARGET.findall(text), sorted(set(FAILED.findall(text)))


def may_be_disturbed(text):
    """Whether what failed is little enough, and is tests: no target that did not build, no test that brought its process down."""
    targets, names = failed_tests(text)
    tests = bool(targets) and not any('--doc' in target for target in targets) and 0 < len(names) <= MOST
    return tests and 'could not compile' not in text and '(signal: ' not in text


# where a log says what failed: TAP's failed test, a panic or a failed test of cargo, Python's exceptions, our own scripts
HEART = re.compile(r'^\s*not ok |panicked at|^test .* FAILED$|^error(\[|:)|^\w*(Error|Exception)\b|^\s*FAIL')
# lines that belong to one that says so, and all that is shown of them: a log of a server may keep only some lines after FAIL
AFTER, HEART_LINES = 12, 40


def heart(path, lines=HEART_LINES):
    """What a log says about failures, each with what follows it, before the end of the log is shown."""
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf8', errors='replace') as f:
        text = [line.rstrip() for line in f if line.strip()]
    shown = sorted(
        {k for i, line in enumerate(text) if HEART.search(line) for k in range(i, i + AFTER) if k < len(text)}
    )
    return ''.join(f'    ! {text[k]}\n' for k in shown[:lines])


def tail(path, lines):
    """The last lines of a log, indented."""
    if not lines or not os.path.exists(path):
        return ''
    with open(path, encoding='utf8', errors='replace') as f:
        text = [line.rstrip() for line in f if line.strip()]
    return ''.join(f'      {line}\n' for line in text[-lines:])


# The tests that make a lab wait for its links most of their time: they run beside all others, one after the other. But for those
# of `watch`, whose samples come late on a busy machine.
LAB = ('--test lab', '--test physics')
WATCH = 'watch::'


def lab_tests(log):
    """Those that make a lab."""
    return cargo_tests(log, [f'{" ".join(LAB)} -- --skip {WATCH}'])


def watch_tests(log):
    """Those that watch hosts of a lab."""
    return cargo_tests(log, [f'{LAB[0]} -- {WATCH}'])


def other_tests(log):
    """All tests of the workspace but those of the lab, and the examples in the documentation."""
    command = ['cargo', 'metadata', '--format-version', '1', '--no-deps', '--locked', '--offline']
    known = subprocess.run(command, cwd=common.ROOT, stdout=subprocess.PIPE, stderr=log, check=False).stdout
    targets = [target for package in json.loads(known or '{}').get('packages', []) for target in package['targets']]
    named = {f'--test {target["name"]}' for target in targets if 'test' in target['kind']}
    if not named.issuperset(LAB):
        log.write(f'no targets of the workspace: {sorted(set(LAB) - named)}\n')
        return 1
    return cargo_tests(log, [' '.join(['--lib --bins', *sorted(named.difference(LAB))]), '--doc'])


def cargo_tests(log, chosen):
    """`cargo test` over the workspace, for each choice of targets; what failed once more, one test after the other. The exit
    code of the last."""
    code = 0
    for targets in chosen:
        code = run(f'cargo test --workspace --locked --no-fail-fast {targets}', log) or code
    if not code:
        return 0
    with open(log.name, encoding='utf8', errors='replace') as f:
        text = f.read()
    if not may_be_disturbed(text):
        return code
    targets, names = failed_tests(text)
    passed = set()
    for target in targets:
        start = log.tell()
        # with the features of the whole workspace, as what was built has them
        kind = target.split(maxsplit=2)[2]
        filters = f'--test-threads=1 --exact {" ".join(map(shlex.quote, names))}'
        if run(f'cargo test --workspace --locked {kind} -- {filters}', log):
            return 1
        with open(log.name, encoding='utf8', errors='replace') as f:
            f.seek(start)
            passed |= set(RAN.findall(f.read()))
    missing = set(names) - passed
    if missing:
        log.write(f'not found again: {", ".join(sorted(missing))}\n')
        return 1
    log.write(f'disturbed, passed alone: {", ".join(names)}\n')
    return 0


def run_all(commands, log):
    """One after the other, until one fails: its exit code. Each is made when the ones before it have run."""
    return next(filter(None, (run(shlex.join(command), log) for command in commands)), 0)


def run(command, log, where=common.ROOT, environment=None):
    """Its exit code; the output goes to the log."""
    log.write(f'$ {command}\n')
    log.flush()
    code = call(shlex.split(command), log, where, environment)
    log.seek(0, os.SEEK_END)
    return code


# Seconds of processors that commands of a thread took, with what they started and waited for.
SPENT = threading.local()


def call(command, log, where=common.ROOT, environment=None):
    """The exit code of a command; its output goes to the log, and the time that it took of the processors to SPENT."""
    out = {'stdin': subprocess.DEVNULL, 'stdout': log, 'stderr': subprocess.STDOUT}
    with subprocess.Popen(command, cwd=where, env=environment, **out) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    SPENT.seconds = getattr(SPENT, 'seconds', 0) + used.ru_utime + used.ru_stime
    return child.returncode


def self_test():
    """Logs as cargo writes them."""
    log = (
        'test a::b ... ok\ntest a::c ... FAILED\ntest serve::d - should panic ... FAILED\nerror: 2 targets failed:\n'
        '    `-p tcpwhy --test cli`\n    `-p tcpwhy-lab --lib`\n'
    )
    assert failed_tests(log) == (['-p tcpwhy --test cli', '-p tcpwhy-lab --lib'], ['a::c', 'serve::d']), failed_tests(
        log
    )
    assert may_be_disturbed(log)
    assert not may_be_disturbed(log + '(signal: 6, SIGABRT: process abort signal)\n')
    assert not may_be_disturbed('error: could not compile `x`\n' + log)
    assert not may_be_disturbed(log + ''.join(f'test many::t{n} ... FAILED\n' for n in range(MOST)))
    assert not may_be_disturbed(log.replace('--lib', '--doc'))
    assert not may_be_disturbed('test a ... ok\nerror: 1 target failed:\n    `-p tcpwhy --lib`\n')
    ran = 'test a ... ok\ntest b::c ... said: 1\nok\ntest d - should panic ... ok\ntest e ... ignored, why\n'
    assert RAN.findall(ran) == ['a', 'b::c', 'd'], RAN.findall(ran)
    with tempfile.NamedTemporaryFile('w', suffix='.log', encoding='utf8') as f:
        f.write('ok 1 - a\nnot ok 2 - b\n  error: x\n' + ''.join(f'ok {n} - c\n' for n in range(3, 40)))
        f.flush()
        said = heart(f.name).splitlines()
    assert said[:2] == ['    ! not ok 2 - b', '    !   error: x'] and len(said) == AFTER, said
    assert heart('/nonexistent') == ''
    print('again: self-test passed')


def main():
    if sys.argv[1:] == ['--self-test']:
        self_test()
    elif len(sys.argv) == 2:
        with open(sys.argv[1], encoding='utf8', errors='replace') as f:
            text = f.read()
        print(may_be_disturbed(text), *failed_tests(text))
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
