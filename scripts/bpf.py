#!/usr/bin/env python3
"""The BPF programs of `tcpwhy watch`: their source in crates/live/bpf, and the object that is built into the program.

    scripts/bpf.py build     with clang, writes the object and what it was made from
    scripts/bpf.py check     the object is that of the source; needs no clang

The object is committed, so that whoever builds tcpwhy needs no clang.
"""

import hashlib
import os
import shutil
import subprocess
import sys

import common

FOLDER = os.path.join(common.ROOT, 'crates', 'live', 'bpf')
SOURCES = ('kernel.h', 'watch.bpf.c')
OBJECT = 'watch.bpf.o'
SUMS = os.path.join(FOLDER, 'SHA256SUMS')
# CO-RE needs type information (-g); of the rest of what a debugger wants nothing is kept, and no path of this machine
CLANG = ('clang', '-O2', '-g', '-fdebug-compilation-dir=.', '-target', 'bpf', '-mcpu=v3', '-Wall', '-Werror')


def sums():
    """As sha256sum writes them."""
    lines = []
    for name in (*SOURCES, OBJECT):
        with open(os.path.join(FOLDER, name), 'rb') as f:
            lines.append(f'{hashlib.sha256(f.read()).hexdigest()}  {name}\n')
    return ''.join(lines)


def build():
    strip = next((s for s in ('llvm-strip', 'llvm-strip-14') if shutil.which(s)), None)
    if not shutil.which('clang') or not strip:
        print('clang and llvm-strip are needed: apt install clang llvm')
        return 1
    subprocess.run([*CLANG, '-c', SOURCES[-1], '-o', OBJECT], cwd=FOLDER, check=True)
    subprocess.run([strip, '-g', OBJECT], cwd=FOLDER, check=True)
    with open(SUMS, 'w', encoding='utf8') as f:
        f.write(sums())
    return 0


def check():
    with open(SUMS, encoding='utf8') as f:
        if f.read() != sums():
            print('crates/live/bpf: the object is not that of the source: make bpf')
            return 1
    print('ok')
    return 0


if __name__ == '__main__':
    sys.exit({'build': build, 'check': check}[sys.argv[1]]())
