#!/usr/bin/env python3
"""The Python package inside Spark and Ray, on clusters of theirs on this machine: `make test-fleet`.

    scripts/fleet.py [--bin PATH] [--only reads|spark|ray]

Installs Spark, Ray and what they need (900 MB) into target/fleet-env, builds the wheel, and runs tests/fleet_test.py in a
network of its own with nothing but its loopback. Ends with code 75 where that cannot be had; Spark needs Java from 17 on.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

import common

import python

HOME = os.path.join(python.TARGET, 'fleet-env')
TOOLS = (*python.TOOLS, 'pyspark==4.3.0', 'ray[data]==2.60.0')
ALONE = ['unshare', '--map-root-user', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--only', choices=('reads', 'spark', 'ray'))
    args = parser.parse_args()
    began = time.monotonic()
    if not shutil.which('java') and args.only != 'ray':
        print('SKIP: Spark needs Java (Debian: openjdk-17-jre-headless); --only ray does without')
        return 75
    if subprocess.run([*ALONE, 'true'], stderr=subprocess.DEVNULL, check=False).returncode:
        print('SKIP: no network namespace can be made here: root, or user namespaces')
        return 75
    python.HOME, python.PYTHON, python.TOOLS = HOME, os.path.join(HOME, 'bin', 'python'), TOOLS
    if not python.set_up():
        print(f'SKIP: {", ".join(TOOLS)} cannot be installed: a network is needed')
        return 75
    install = [python.PYTHON, '-m', 'pip', 'install', '--quiet', '--force-reinstall', '--no-deps', python.wheel()]
    subprocess.run(install, check=True)
    common.generator()
    print(f'set up in {time.monotonic() - began:.0f} s', flush=True)
    only = ['--only', args.only] if args.only else []
    command = [*ALONE, python.PYTHON, 'tests/fleet_test.py', '--bin', os.path.abspath(args.bin), *only]
    code = subprocess.run(command, cwd=common.ROOT, check=False).returncode
    print(f'{time.monotonic() - began:.0f} s in all')
    return code


if __name__ == '__main__':
    sys.exit(main())
