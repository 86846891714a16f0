"""Checks of `make test` that take a sample: some made cases, and the display filters of some captures."""

import os
import subprocess
import sys
import tempfile

import again
import common

# bundled captures that tshark reads from the file as it is
WITH_FINDINGS = [
    'zeek__smtp_bdat.pcap',
    'loopback_write_write_read.pcap',
    'zeek__krb_kerberos_tso.pcapng',
    'packet-headers__testdata_large-ndt.pcap',
]


def made_cases(log):
    """Some made cases: their labels are well-formed, answers tile, and the score is not below the committed floor."""
    with tempfile.TemporaryDirectory() as folder:
        return again.run_all(of_made_cases(folder), log)


def of_made_cases(folder):
    """They are made there, then explained and judged."""
    python = sys.executable
    yield [python, 'scripts/cases.py', '--sample', folder]
    labelled = [case.path for case in common.labelled_in(folder)]
    yield [python, 'scripts/check_json.py', '--bin', common.BINARY, '--kind', 'any', *labelled]
    score = [python, 'scripts/accuracy.py', '--bin', common.BINARY, '--folder', folder, '--quiet']
    yield [*score, '--floor', 'scripts/cases_floor.json']


def tshark_finds_the_evidence(log):
    """The display filter of every finding on some bundled captures selects the frames that the finding names, and no others."""
    wrong = filters = 0
    for name in WITH_FINDINGS:
        path = os.path.join(common.ROOT, 'captures', name)
        for finding in common.explain(common.BINARY, path)[0]['findings']:
            example = finding['example']
            if not example or not example['frames']['key']:
                continue
            command = [
                'tshark',
                '-n',
                '-r',
                path,
                '-Y',
                example['display_filter'],
                '-T',
                'fields',
                '-e',
                'frame.number',
            ]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, check=False)
            found = [int(n) for n in done.stdout.split()]
            filters += 1
            if done.returncode or found != example['frames']['key']:
                wrong += 1
                log.write(f'{name} {finding["id"]}: {example["display_filter"]} selects {found}\n')
    log.write(f'{filters} filters, {wrong} wrong\n')
    return 1 if wrong or filters < 2 * len(WITH_FINDINGS) else 0
