#!/usr/bin/env python3
"""The program as its releases have it: compiled twice, the second time with what the first one counted, and laid out anew.

    scripts/profiled.py [--static] [OUT]    OUT: target/profiled/tcpwhy

The compiler is told how often each branch was taken while captures were explained: those that are bundled, and small ones of the
shapes of `make bench`. Then BOLT, where it is installed (Debian: bolt-16), counts once more in the program that came out, and
puts what runs together side by side: the rules are larger than a processor's first cache. All programs must say the same of
all captures. It takes twelve minutes, and llvm-profdata of the compiler's own version of LLVM: a component of the tool chain
(llvm-tools), which is installed if rustup is there. Without it the program is compiled once, as `make build` does, and that
is said.
"""

import argparse
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import common

TARGET = os.path.dirname(os.path.dirname(common.BINARY))
OUT = os.path.join(TARGET, 'profiled', 'tcpwhy')
SHAPES = (
    ('elephant', '300000'),
    ('flows', '300000', '3000'),
    ('flows', '100000', '400'),
    ('echo', '52', '3000'),
    ('short', '20000'),
    ('scan', '30000'),
)
WAYS = (['--json'], ['-q'], [], ['--jsonl'])
# Blocks in the order in which they follow each other, functions by who calls whom, what hardly runs apart; in the room that
# the code had before, which takes that it does not begin on a page of 2 MB.
LAYOUT = (
    '-reorder-blocks=ext-tsp',
    '-reorder-functions=hfsort+',
    '-split-functions',
    '-split-all-cold',
    '-split-eh',
    '-icf=1',
    '-use-old-text',
    '-no-huge-pages',
)


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=common.ROOT).stdout.strip()


def host():
    """The target that is built for: with its name given, what runs while it is built is not counted."""
    return re.search(r'^host: (.+)$', said('rustc', '-vV'), re.M)[1]


def of_compiler(name):
    """Where the compiler's tool chain has this tool, if it has it."""
    return os.path.join(os.path.dirname(said('rustc', '--print', 'target-libdir')), 'bin', name)


def merger():
    """The path of llvm-profdata, which is installed if it can be, or None."""
    wanted = re.search(r'^LLVM version: (\d+)', said('rustc', '-vV'), re.M)[1]
    ours = of_compiler('llvm-profdata')
    if not os.path.exists(ours) and shutil.which('rustup'):
        subprocess.run(
            ['rustup', 'component', 'add', 'llvm-tools'], stderr=subprocess.DEVNULL, cwd=common.ROOT, check=False
        )
    if os.path.exists(ours):
        return ours
    for name in (f'llvm-profdata-{wanted}', 'llvm-profdata'):
        path = shutil.which(name)
        if path and re.search(rf'LLVM version {wanted}\b', said(path, '--version')):
            return path
    return None


def build(name, flags, **profile):
    """Compiles with these flags, in a folder of this name; the program's path. Flags that the caller gave hold as well."""
    target = os.path.join(TARGET, 'profiled', name)
    flags = ' '.join([os.environ.get('RUSTFLAGS', ''), *flags]).strip()
    # the pieces of all crates once more together, which takes longest and of which little is left to gain (docs/speed.md)
    environment = {
        **os.environ,
        'RUSTFLAGS': flags,
        'CARGO_TARGET_DIR': target,
        'CARGO_PROFILE_RELEASE_LTO': 'thin',
        **profile,
    }
    command = ['cargo', 'build', '--release', '--locked', '--quiet', '-p', 'tcpwhy', '--target', host()]
    subprocess.run(command, cwd=common.ROOT, env=environment, check=True)
    return os.path.join(target, host(), 'release', 'tcpwhy')


def captures(folder):
    """Those that are explained: bundled ones, and some of each shape that are written into the folder."""
    generator = common.generator()
    for n, shape in enumerate(SHAPES):
        path = os.path.join(folder, f'{n}.pcap')
        subprocess.run([generator, *shape, path], stdout=subprocess.DEVNULL, cwd=common.ROOT, check=True)
        yield path
    yield from sorted(glob.glob(os.path.join(common.ROOT, 'captures', '**', '*.pcap*'), recursive=True))


def answers(binary, paths, profile=os.devnull):
    """{(capture, way): what is said of it, in short}. Of a program that counts, its counts go to `profile`."""
    environment = {**os.environ, 'LLVM_PROFILE_FILE': profile, 'NO_COLOR': '1', 'COLUMNS': '80'}
    found = {}
    for path in paths:
        for way in WAYS:
            command = [binary, 'explain', path, *way]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
            if done.returncode not in (0, 3):
                sys.exit(f'{" ".join(command)}: exit code {done.returncode}\n{done.stderr.decode(errors="replace")}')
            found[path, *way] = hashlib.sha256(done.stdout).hexdigest()
    return found


def counted(merge, static):
    """Compiles twice, and lays out anew what comes out; the program, and what was done."""
    # without shared libraries nothing tells BOLT's counters that the program ends
    bolt = None if static else optimiser()
    # BOLT moves functions, for which it needs to know where they are named, and what they are called
    movable = ({'CARGO_PROFILE_RELEASE_STRIP': 'none'}, ['-Clink-arg=-Wl,--emit-relocs']) if bolt else ({}, [])
    with tempfile.TemporaryDirectory() as folder:
        raw, merged = os.path.join(folder, 'raw'), os.path.join(folder, 'merged.profdata')
        paths = list(captures(folder))
        print('compiled once, to count', flush=True)
        counting = build('counting', [*static, f'-Cprofile-generate={raw}'])
        expected = answers(counting, paths, os.path.join(raw, '%m.profraw'))
        subprocess.run([merge, 'merge', '-o', merged, raw], check=True)
        print(f'and again, with what it counted on {len(paths)} captures', flush=True)
        binary = build('built', [*static, f'-Cprofile-use={merged}', *movable[1]], **movable[0])
        done = 'compiled twice'
        if bolt:
            binary, done = laid_out(bolt, binary, paths), 'compiled twice and laid out anew'
        differ = [what for what, answer in answers(binary, paths).items() if expected[what] != answer]
    if differ:
        sys.exit(f'answers differ: {differ}')
    return binary, f'{done}; {len(expected)} answers are the same'


def optimiser():
    """The folder of BOLT's tools, or None, which is said."""
    names = ['llvm-bolt', *(f'llvm-bolt-{n}' for n in range(30, 14, -1))]
    found = next(filter(None, map(shutil.which, names)), None)
    strips = os.path.exists(of_compiler('llvm-strip'))
    if found and strips:
        # where it is in truth stands what it links into programs that count
        return os.path.dirname(os.path.realpath(found))
    missing = 'llvm-bolt (Debian: bolt-16)' if strips else 'llvm-strip (rustup component add llvm-tools)'
    print(f'not laid out anew: no {missing}', flush=True)
    return None


def laid_out(bolt, binary, paths):
    """The program with what runs together side by side, as was counted on these captures; its path."""
    with tempfile.TemporaryDirectory() as folder:
        counting, counts, merged = (os.path.join(folder, name) for name in ('counting', 'counts', 'merged'))
        print('and laid out anew', flush=True)
        each = [f'-instrumentation-file={counts}', '-instrumentation-file-append-pid']
        quietly(os.path.join(bolt, 'llvm-bolt'), binary, '-instrument', *each, '-o', counting)
        answers(counting, paths)
        with open(merged, 'wb') as all_of_them:
            command = [os.path.join(bolt, 'merge-fdata'), *glob.glob(f'{counts}.*')]
            subprocess.run(command, stdout=all_of_them, stderr=subprocess.DEVNULL, check=True)
        out = f'{binary}.laid-out'
        quietly(os.path.join(bolt, 'llvm-bolt'), binary, f'-data={merged}', *LAYOUT, '-o', out)
        # binutils' strip does not know what to make of the sections that BOLT moves
        subprocess.run([of_compiler('llvm-strip'), '--strip-all', out], check=True)
        os.chmod(out, 0o755)
        return out


def quietly(*command):
    """Runs it; what it says only where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f'{" ".join(command)}: exit code {done.returncode}\n{done.stderr[-4000:]}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--static', action='store_true', help='without shared libraries')
    parser.add_argument('out', nargs='?', default=OUT)
    args = parser.parse_args()
    out = os.path.abspath(args.out)
    static = ['-C target-feature=+crt-static'] if args.static else []
    merge = merger()
    if merge:
        binary, said_of_it = counted(merge, static)
    else:
        binary = build('plain', static)
        said_of_it = (
            "compiled once: no llvm-profdata of the compiler's version of LLVM (rustup component add llvm-tools)"
        )
    os.makedirs(os.path.dirname(out), exist_ok=True)
    shutil.copy2(binary, out)
    print(f'{common.shown(out)}: {said_of_it}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
