#!/usr/bin/env python3
"""A clone by itself: what is committed is all that the builds read, and in a clone without ../shared the bundled captures are
explained.

    scripts/alone.py --bin PATH [LIMITS]    LIMITS: what scripts/accuracy.py must find in the clone
    scripts/alone.py --self-test

Nothing is compiled for it: the compiler wrote beside all that was built what it had read (dep-info), so a clone has what it needs
if each such file is committed, and compiles, since the same files did.
"""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

import common

TARGET = os.path.dirname(os.path.dirname(common.BINARY))
# a space within a name is escaped
NAME = re.compile(r'(?:\\ |\S)+')


def named(dep_info):
    """The files that dep-info of the compiler says were read: the right sides of its rules."""
    for line in dep_info.splitlines():
        if not line.startswith('#') and ': ' in line:
            for name in NAME.findall(line.split(': ', 1)[1]):
                yield name.replace('\\ ', ' ')


def watched(output):
    """The files that a build script said it reads."""
    return re.findall(r'^cargo::?rerun-if-changed=(.+)$', output, re.M)


def files_read(target):
    """Absolute paths of all files that builds in a folder of cargo read."""
    out = set()
    for profile in ('debug', 'release'):
        for path in glob.glob(os.path.join(target, profile, 'deps', '*.d')):
            with open(path, encoding='utf8') as f:
                out.update(os.path.join(common.ROOT, name) for name in named(f.read()))
        # cargo starts build scripts in the folder of their package
        for path in glob.glob(os.path.join(target, profile, 'build', 'tcpwhy*', 'output')):
            package = os.path.basename(os.path.dirname(path)).rsplit('-', 1)[0].removeprefix('tcpwhy-')
            with open(path, encoding='utf8') as f:
                where = os.path.join(common.ROOT, 'crates', package)
                out.update(os.path.normpath(os.path.join(where, name)) for name in watched(f.read()))
    return {os.path.normpath(path) for path in out}


def strangers(read, committed, root, known):
    """Of the files read, those that a clone would not have: not committed, or outside of the project and of `known` folders.
    What is gone by now was read by an earlier build."""
    within = tuple(os.path.join(folder, '') for folder in known)
    return sorted(
        path
        for path in read
        if not path.startswith(within) and os.path.exists(path) and os.path.relpath(path, root) not in committed
    )


def is_whole():
    """Whether all that was read is committed; says what is not."""
    listed = subprocess.run(['git', 'ls-files', '-z'], cwd=common.ROOT, stdout=subprocess.PIPE, check=True, text=True)
    home = os.environ.get('CARGO_HOME', os.path.expanduser('~/.cargo'))
    sysroot = subprocess.run(['rustc', '--print', 'sysroot'], stdout=subprocess.PIPE, check=True, text=True)
    read = files_read(TARGET)
    known = [os.path.abspath(TARGET), os.path.abspath(home), sysroot.stdout.strip()]
    committed = set(listed.stdout.split('\0'))
    folders = {os.path.dirname(path) for path in committed}
    bad = strangers(read, committed | folders, common.ROOT, known)
    for path in bad:
        print(f'read while building, but not committed: {os.path.relpath(path, common.ROOT)}')
    own = sum(os.path.relpath(path, common.ROOT) in committed for path in read)
    print(f'{own} files of the project were read while building')
    # none at all would mean that no dep-info was found
    return bool(own) and not bad


def answers(binary, limits):
    """The exit code of the first command that fails in a clone."""
    with tempfile.TemporaryDirectory() as folder:
        clone = os.path.join(folder, 'tcpwhy')
        environment = {k: v for k, v in os.environ.items() if k != 'TCPWHY_SHARED'}
        subprocess.run(['git', 'clone', '--quiet', '--no-hardlinks', common.ROOT, clone], check=True)
        for command in (
            [binary, 'explain', 'captures/zeek__smtp_bdat.pcap'],
            [sys.executable, 'tests/demo_test.py', '--bin', binary],
            [sys.executable, 'scripts/check_json.py', '--bin', binary, '--all'],
            [sys.executable, 'scripts/accuracy.py', '--bin', binary, *limits],
        ):
            code = subprocess.run(command, cwd=clone, env=environment, check=False).returncode
            if code:
                return code
    return 0


def self_test():
    """Dep-info, and what a clone would not have."""
    info = '/t/a.d: src/lib.rs ../shared/x\\ y.txt /t/out/p.rs\n\nsrc/lib.rs:\n# env-dep:A=b: c\n'
    assert list(named(info)) == ['src/lib.rs', '../shared/x y.txt', '/t/out/p.rs'], list(named(info))
    assert watched('cargo::rerun-if-changed=a.md\ncargo:rerun-if-changed=../b\nother\n') == ['a.md', '../b']
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, 'tree')
        paths = [os.path.join(root, 'kept'), os.path.join(root, 'forgotten'), os.path.join(folder, 'outside')]
        os.mkdir(root)
        for path in paths:
            with open(path, 'w', encoding='utf8'):
                pass
        known = os.path.join(folder, 'outside-of-all')
        read = {*paths, os.path.join(root, 'gone'), os.path.join(known, 'x')}
        assert strangers(read, {'kept'}, root, [known]) == [paths[2], paths[1]], strangers(
            read, {'kept'}, root, [known]
        )
    print('alone: self-test passed')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--self-test', action='store_true')
    args, limits = parser.parse_known_args()
    if args.self_test:
        self_test()
        return 0
    if not is_whole():
        return 1
    return answers(os.path.abspath(args.bin), limits)


if __name__ == '__main__':
    sys.exit(main())
