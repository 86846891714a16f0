#!/usr/bin/env python3
"""How much room an exchange takes in the tables of `explain --parquet`, and what a sum over them takes: `make tables-size`.

    scripts/tables_size.py [--bin PATH]

A million exchanges of a byte and its echo on a hundred connections must take no more than MOST bytes each; requests of many
sizes with losses, which have twice as many spans, are measured beside them.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile
import time

import common

MOST = 50
# name, arguments of the generator, whether the bound holds
CAPTURES = (('echo', ('echo', '10000', '100'), True), ('flows', ('flows', '6000000', '2000'), False))


def bytes_of(folder, table):
    return sum(os.path.getsize(path) for path in glob.glob(os.path.join(folder, table, '*', '*.parquet')))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    binary = parser.parse_args().bin
    failed = 0
    for name, arguments, bound in CAPTURES:
        with tempfile.TemporaryDirectory() as work:
            capture, tables = os.path.join(work, f'{name}.pcap'), os.path.join(work, 'tables')
            subprocess.run([common.generator(), *arguments, capture], check=True, stdout=subprocess.DEVNULL)
            began = time.monotonic()
            done = subprocess.run(
                [binary, 'explain', capture, '--parquet', tables], check=True, capture_output=True, text=True
            )
            took = time.monotonic() - began
            exchanges, spans = (int(done.stdout.split(word)[0].split()[-1]) for word in (' exchanges', ' spans'))
            each = {t: bytes_of(tables, t) / exchanges for t in ('connections', 'exchanges', 'spans', 'findings')}
            began = time.monotonic()
            subprocess.run([binary, 'summarize', tables], check=True, stdout=subprocess.DEVNULL)
            summed = time.monotonic() - began
            total = sum(each.values())
            parts = ', '.join(f'{t} {n:.1f}' for t, n in each.items())
            print(
                f'{name}: {exchanges} exchanges, {spans / exchanges:.1f} spans each: {total:.1f} bytes an exchange ({parts}); '
                f'{took:.1f} s to write, {summed:.2f} s to sum up',
                flush=True,
            )
            if bound and total > MOST:
                failed = 1
                print(f'{name}: more than {MOST} bytes an exchange')
    return failed


if __name__ == '__main__':
    sys.exit(main())
