#!/usr/bin/env python3
"""The BPF programs of `tcpwhy watch` and `tcpwhy record`: their sources in crates/live/bpf, and the objects that are built in.

    scripts/bpf.py build     with clang, writes the objects and what they were made from
    scripts/bpf.py check     the objects are those of the sources, and files that these name are there; needs no clang

The objects are committed, so that whoever builds tcpwhy needs no clang.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys

import common

FOLDER = os.path.join(common.ROOT, 'crates', 'live', 'bpf')
HEADER = 'kernel.h'
# Sums for each socket; a record for each event; what the audit of a host asks
PROGRAMS = ('watch', 'events', 'check')
SUMS = os.path.join(FOLDER, 'SHA256SUMS')
# CO-RE needs type information (-g); of the rest of what a debugger wants nothing is kept, and no path of this machine
CLANG = ('clang', '-O2', '-g', '-fdebug-compilation-dir=.', '-target', 'bpf', '-mcpu=v3', '-Wall', '-Werror')


def sums():
    """As sha256sum writes them."""
    lines = []
    for name in (HEADER, *(f'{program}.bpf.{kind}' for program in PROGRAMS for kind in 'co')):
        with open(os.path.join(FOLDER, name), 'rb') as f:
            lines.append(f'{hashlib.sha256(f.read()).hexdigest()}  {name}\n')
    return ''.join(lines)


def build():
    strip = next((s for s in ('llvm-strip', 'llvm-strip-14') if shutil.which(s)), None)
    if not shutil.which('clang') or not strip:
        print('clang and llvm-strip are needed: apt install clang llvm')
        return 1
    for program in PROGRAMS:
        subprocess.run([*CLANG, '-c', f'{program}.bpf.c', '-o', f'{program}.bpf.o'], cwd=FOLDER, check=True)
        subprocess.run([strip, '-g', f'{program}.bpf.o'], cwd=FOLDER, check=True)
    with open(SUMS, 'w', encoding='utf8') as f:
        f.write(sums())
    return 0


def check():
    with open(SUMS, encoding='utf8') as f:
        if f.read() != sums():
            print('crates/live/bpf: an object is not that of its source: make bpf')
            return 1
    for program in PROGRAMS:
        with open(os.path.join(FOLDER, f'{program}.bpf.c'), encoding='utf8') as f:
            named = re.findall(r'\bsrc/\S+\.rs', f.read())
        for name in named:
            if not os.path.exists(os.path.join(FOLDER, '..', name)):
                print(f'crates/live/bpf/{program}.bpf.c names {name}, which is not there')
                return 1
    print('ok')
    return 0


if __name__ == '__main__':
    sys.exit({'build': build, 'check': check}[sys.argv[1]]())
