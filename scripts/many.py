#!/usr/bin/env python3
"""Ten thousand small captures against one file of the same packets: `make many`.

    scripts/many.py [--bin PATH] [--captures N] [--sample]      --sample: some hundred, for seconds, and no bound on time

Small captures are copies of bundled ones with addresses of their own, one after the other in time. `explain --parquet` reads
them as a folder, on all cores, and as one file, which is read by one core; by CPU time the folder pays for what each file costs.
Memory must not grow with the number of captures, and the folder must reach LEAST of the file's throughput. Beside it, on some of
them: a shell loop over the program, and tshark's fields put into Parquet by pyarrow, where both are there.
"""

import argparse
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time

import common

LEAST = 0.9
# memory of twice as many captures, at most: rows are held until there are enough for a group, some 50 MB a worker
GROWTH = 1.25
SOME = 200
# bundled: little-endian pcap with microseconds on Ethernet, of some seconds
SOURCES = ('zeek__smtp_bdat.pcap', 'zeek__tcp_missing-syn.pcap', 'zeek__tcp_ssh-dups.pcap', 'zeek__tcp_reassembly.pcap')
# left by _exit: threads of Arrow now and then abort an interpreter that is finalised, long after the file was closed
# (apache/arrow issues 34314 and 36980)
TSHARK = """\
import os, subprocess, sys
import pyarrow, pyarrow.csv, pyarrow.parquet
fields = ['frame.time_epoch', 'ip.src', 'ip.dst']
fields += [f'tcp.{name}' for name in ('srcport', 'dstport', 'seq', 'ack', 'len', 'analysis.flags')]
options = [word for field in fields for word in ('-e', field)]
tables = []
for path in sys.argv[2:]:
    command = ['tshark', '-n', '-r', path, '-Y', 'tcp', '-T', 'fields', '-E', 'header=y', '-E', 'separator=,', *options]
    text = subprocess.run(command, capture_output=True, check=True).stdout
    if text.count(b'\\n') > 1:
        tables.append(pyarrow.csv.read_csv(pyarrow.BufferReader(text)))
pyarrow.parquet.write_table(pyarrow.concat_tables(tables, promote_options='permissive'), sys.argv[1], compression='zstd')
os._exit(0)
"""


def packets(path):
    """(nanoseconds since the first, header without time, bytes) of the IPv4 packets of a capture."""
    with open(path, 'rb') as f:
        data = f.read()
    magic, *_, link = struct.unpack('<IHHiIII', data[:24])
    if magic != 0xA1B2C3D4 or link != 1:
        sys.exit(f'{common.shown(path)}: no pcap in microseconds on Ethernet')
    out, at, first = [], 24, None
    while at + 16 <= len(data):
        seconds, micros, kept, length = struct.unpack('<IIII', data[at : at + 16])
        moment = seconds * 10**6 + micros
        first = moment if first is None else first
        frame = data[at + 16 : at + 16 + kept]
        if frame[12:14] == b'\x08\x00':
            out.append((moment - first, length, frame))
        at += 16 + kept
    return out


def moved(frame, n):
    """With addresses that no other capture has; checksums are not looked at."""
    frame = bytearray(frame)
    for at in (27, 31):
        frame[at] ^= n >> 8
        frame[at + 1] ^= n & 255
    return bytes(frame)


def make(folder, n):
    """Writes the captures, and one with all their packets; how many packets."""
    sources = [packets(os.path.join(common.ROOT, 'captures', name)) for name in SOURCES]
    head = struct.pack('<IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    small, count, now = os.path.join(folder, 'small'), 0, 1_700_000_000 * 10**6
    os.mkdir(small)
    with open(os.path.join(folder, 'one.pcap'), 'wb') as one:
        one.write(head)
        for i in range(n):
            source = sources[i % len(sources)]
            records = b''
            for offset, length, frame in source:
                moment = now + offset
                records += struct.pack('<IIII', moment // 10**6, moment % 10**6, len(frame), length) + moved(frame, i)
            now += source[-1][0] + 10**5
            count += len(source)
            one.write(records)
            with open(os.path.join(small, f'{i // 1000:02}-{i:05}.pcap'), 'wb') as f:
                f.write(head + records)
    return count


def run(*command):
    """Seconds, CPU seconds with those of children, and MiB at most, which are no less than those of this process."""
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        took = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            last = said.read()[-2000:].decode(errors='replace')
            sys.exit(f'{" ".join(command[:4])} ...: exit code {child.returncode}\n{last}')
    return took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def rows(tables):
    """Connections, exchanges and spans, as the manifest counts them."""
    with open(os.path.join(tables, '_manifest.jsonl'), encoding='utf8') as f:
        inputs = [done for line in list(f)[1:] for done in json.loads(line)['inputs']]
    return [sum(done['rows'][n] for done in inputs) for n in range(3)]


def beside(binary, small, work, n):
    """Other ways to tables, on some of the captures: (name, captures, measures)."""
    some = sorted(os.path.join(small, name) for name in os.listdir(small))[:n]
    loop = 'binary=$1; out=$2; shift 2; for f; do "$binary" explain "$f" --json > "$out"; done'
    yield 'a shell loop over the program', run('sh', '-c', loop, 'sh', binary, os.path.join(work, 'loop.json'), *some)
    python = os.path.join(os.path.dirname(os.path.dirname(common.BINARY)), 'tools', 'bin', 'python')
    python = python if os.path.exists(python) else sys.executable
    if (
        common.have('tshark')
        and not subprocess.run([python, '-c', 'import pyarrow'], stderr=subprocess.DEVNULL).returncode
    ):
        yield 'tshark and pyarrow', run(python, '-c', TSHARK, os.path.join(work, 'tshark.parquet'), *some)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--captures', type=int, default=10_000)
    parser.add_argument('--sample', action='store_true')
    args = parser.parse_args()
    binary, n = os.path.abspath(args.bin), 300 if args.sample else args.captures
    some = 3 if args.sample else SOME
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        count = make(work, n)
        small, one = os.path.join(work, 'small'), os.path.join(work, 'one.pcap')
        # what is read for the first time is read from the disk
        for path in (one, *(os.path.join(small, name) for name in os.listdir(small))):
            with open(path, 'rb') as f:
                while f.read(1 << 20):
                    pass
        whole = run(binary, 'explain', one, '--parquet', os.path.join(work, 'one.tables'))
        half = sorted(os.path.join(small, name) for name in os.listdir(small))[: n // 2]
        few = run(binary, 'explain', *half, '--parquet', os.path.join(work, 'few.tables'))
        many = run(binary, 'explain', small, '--parquet', os.path.join(work, 'many.tables'))

        def line(name, captures, measured, note=''):
            took, cpu, memory = measured
            each = count / n * captures
            print(
                f'{name:<32} {each / took:>9.0f} packets/s, {each / cpu:>9.0f} a second of CPU, {memory:>5.0f} MiB{note}',
                flush=True,
            )

        print(f'{n} captures of {count} packets, {os.path.getsize(one) >> 20} MiB')
        line('one file', n, whole)
        line(f'half: {n // 2} files', n // 2, few)
        ratio = whole[0] / many[0]
        line(f'{n} files', n, many, f'; {ratio:.0%} of one file, {whole[1] / many[1]:.0%} by CPU')
        for name, measured in beside(binary, small, work, some):
            slower = measured[1] / min(some, n) / (many[1] / n)
            line(name, min(some, n), measured, f'; {slower:.1f} times the CPU')
        counts = [rows(os.path.join(work, f'{name}.tables')) for name in ('one', 'many')]
        if counts[0] != counts[1] or counts[0][0] != n:
            failed = 1
            print(f'connections, exchanges and spans differ: {counts}')
        if ratio < LEAST and not args.sample:
            failed = 1
            print(f'less than {LEAST:.0%} of the throughput of one file')
        if many[2] > GROWTH * few[2] + 64:
            failed = 1
            print('memory grows with the number of captures')
    return failed


if __name__ == '__main__':
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    sys.exit(main())
