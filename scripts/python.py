#!/usr/bin/env python3
"""The Python package: its wheel, and its tests.

    scripts/python.py wheel     builds target/wheels/tcpwhy-*.whl, for every Python from 3.10 on
    scripts/python.py test      builds it, installs it with pandas, Polars, DuckDB and pyarrow into target/python-env, runs
                                tests/python_test.py and the notebook, and the quick ones of those tests under every other Python
                                from 3.10 on that is here; ends with code 75 where the tools cannot be had

maturin comes from the package index into target/python-env.
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import venv

import common

TARGET = os.path.dirname(os.path.dirname(common.BINARY))
HOME = os.path.join(TARGET, 'python-env')
WHEELS = os.path.join(TARGET, 'wheels')
PYTHON = os.path.join(HOME, 'bin', 'python')
TOOLS = ('maturin==1.16.0', 'pandas==3.1.1', 'polars==2.1.0', 'duckdb==2.0.0', 'pyarrow==26.0.1', 'abi3audit==0.0.26')
# of the notebook
TOOLS += ('nbclient==0.11.0', 'nbformat==5.11.1', 'ipykernel==7.4.0', 'matplotlib==3.11.2')


def set_up():
    """Whether the tools are there."""
    mark = os.path.join(HOME, 'installed.txt')
    if os.path.exists(mark):
        with open(mark, encoding='utf8') as f:
            if f.read() == '\n'.join(TOOLS):
                return True
    venv.create(HOME, with_pip=True, clear=True)
    if subprocess.run([PYTHON, '-m', 'pip', 'install', '--quiet', *TOOLS], check=False).returncode:
        return False
    with open(mark, 'w', encoding='utf8') as f:
        f.write('\n'.join(TOOLS))
    return True


def wheel():
    """Builds it; its path."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    command = [os.path.join(HOME, 'bin', 'maturin'), 'build', '--release', '--locked', '--quiet', '--out', WHEELS]
    environment = {**os.environ, 'CARGO_TARGET_DIR': os.path.join(TARGET, 'python')}
    subprocess.run(command, cwd=os.path.join(common.ROOT, 'python'), env=environment, check=True)
    return glob.glob(os.path.join(WHEELS, '*.whl'))[0]


def others():
    """{version: interpreter} of the other Pythons on this machine that the wheel is for: by their names in PATH, or of pyenv."""
    names = glob.glob(os.path.expanduser('~/.pyenv/versions/3.*/bin/python3'))
    for folder in os.environ.get('PATH', '').split(os.pathsep):
        names += glob.glob(os.path.join(folder, 'python3.[1-9][0-9]'))
    found = {}
    for name in names:
        ask = [name, '-c', 'import sys, venv, ensurepip; print(*sys.version_info[:2])']
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
        told = tuple(map(int, done.stdout.split())) if done.returncode == 0 else ()
        if told >= (3, 10) and told != sys.version_info[:2]:
            found.setdefault(told, name)
    return found


def under_others(built, binary):
    """Runs the quick tests of the wheel under each of them; how many failed. One for which the engines have no wheels is told."""
    failed = 0
    for (major, minor), interpreter in sorted(others().items()):
        home = f'{HOME}-{major}.{minor}'
        python = os.path.join(home, 'bin', 'python')
        made = subprocess.run([interpreter, '-m', 'venv', '--clear', home], check=False).returncode
        install = [
            python,
            '-m',
            'pip',
            'install',
            '--quiet',
            '--only-binary',
            ':all:',
            'pandas',
            'polars',
            'duckdb',
            'pyarrow',
        ]
        if made or subprocess.run(install, check=False).returncode:
            print(f'Python {major}.{minor}: pandas, polars, duckdb, pyarrow cannot be installed: not tested')
            continue
        subprocess.run([python, '-m', 'pip', 'install', '--quiet', '--no-deps', built], check=True)
        test = [python, 'tests/python_test.py', '--quick', '--bin', binary]
        failed += subprocess.run(test, cwd=common.ROOT, check=False).returncode != 0
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=('wheel', 'test'))
    parser.add_argument('--bin', default=common.BINARY)
    args = parser.parse_args()
    if not set_up():
        print(f'SKIP: {", ".join(TOOLS)} cannot be installed: a network is needed')
        return 75
    built = wheel()
    print(f'{common.shown(built)}: {os.path.getsize(built)} bytes', flush=True)
    if args.what == 'wheel':
        return 0
    install = [PYTHON, '-m', 'pip', 'install', '--quiet', '--force-reinstall', '--no-deps', built]
    subprocess.run(install, check=True)
    audit = [os.path.join(HOME, 'bin', 'abi3audit'), '--strict', built]
    if subprocess.run(audit, check=False).returncode:
        return 1
    tests = (['tests/python_test.py', '--bin', args.bin], ['scripts/notebook.py', 'run'])
    codes = [subprocess.run([PYTHON, *test], cwd=common.ROOT, check=False).returncode for test in tests]
    return 1 if any(codes) or under_others(built, args.bin) else 0


if __name__ == '__main__':
    sys.exit(main())
