#!/usr/bin/env python3
"""How right `explain` is of what `tcpwhy record` kept, beside the bare captures of the same runs of the lab's matrix.

    scripts/accuracy_record.py --bin PATH [--folder DIR] [--only TEXT] [--slice N/M] [--score-only] [--verbose]
    scripts/accuracy_record.py ... --min-dominant 0.95 --max-wrong 0     of both ends; a miss is an exit code of 1

On the host of either end a `record` stands beside each run; its file is kept beside the captures that the lab takes, as
record.client.pcapng and record.server.pcapng. Labels are the lab's own: they ask neither. What is in the folder already is kept,
so that an interrupted set can be completed. Root.
"""

import argparse
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import accuracy
import capfile
import common
from answers.score import HEADING, Score, misses
from answers.verdicts import RIGHT, judge, spans_of
from watch_scenarios import namespaces

CLIENT = bytes([10, 77, 0, 1])
ENDS = ('client', 'server', 'both')
# for a recorder to stand
READY = 20
# of the cooked header: a packet that this host sends
OUTGOING = 4


class Beside:
    """The recorders of one run."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.running = binary, folder, {}

    def look(self, lab):
        """One in each namespace. The run stands still until they record."""
        missing = {
            name: path
            for name, path in namespaces(lab.pid).items()
            if name not in self.running or self.running[name][0].poll() is not None
        }
        if not missing:
            return
        lab.send_signal(signal.SIGSTOP)
        try:
            for name, path in missing.items():
                number = len(os.listdir(self.folder))
                to = os.path.join(self.folder, f'{number}.pcapng')
                command = ['env', '--default-signal=INT', self.binary, 'record', '-o', to, '--netns', path]
                quiet = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
                process = subprocess.Popen(command, **quiet)
                self.running[name] = process, to
                until = time.monotonic() + READY
                # The file is made when packets and events are attached.
                while process.poll() is None and not os.path.exists(to) and time.monotonic() < until:
                    time.sleep(0.005)
        finally:
            lab.send_signal(signal.SIGCONT)

    def end(self):
        """The files that were written, in the order in which they were begun."""
        for process, _ in self.running.values():
            process.send_signal(signal.SIGINT)
        for process, _ in self.running.values():
            process.wait()
        files = [to for _, to in self.running.values() if os.path.exists(to)]
        return sorted(files, key=lambda to: int(os.path.basename(to).split('.')[0]))


def end_of(path):
    """Whose host this was recorded on: who sends from it."""
    for packet in capfile.read(path):
        found = capfile.tcp(packet)
        if packet.link == capfile.SLL2 and packet.data[10] == OUTGOING and found:
            return 'client' if found.source == CLIENT else 'server'
    return None


def make(args, name):
    """One run of the matrix with its recorders."""
    place = os.path.join(args.folder, name)
    if os.path.exists(os.path.join(place, 'record.client.pcapng')):
        return
    shutil.rmtree(place, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        beside = Beside(args.bin, folder)
        command = [args.bin, 'lab', 'dataset', args.folder, '--only', name]
        with open(os.path.join(folder, 'log'), 'w', encoding='utf8') as log:
            lab = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            while lab.poll() is None:
                beside.look(lab)
                time.sleep(0.002)
        files = beside.end()
        if not os.path.exists(os.path.join(place, 'label.json')):
            with open(os.path.join(folder, 'log'), encoding='utf8') as log:
                print(f'{name}: {log.read().strip()[-300:]}')
            return
        # A run that was disturbed was made again, between hosts of its own: the last ones count.
        for path in files:
            end = end_of(path)
            if end:
                shutil.copyfile(path, os.path.join(place, f'record.{end}.pcapng'))


def no_events(binary):
    """Why there are no kernel events here, if there are none."""
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, 'record', '-o', os.path.join(folder, 'none.pcapng'), '--', 'true']
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    without = [line for line in done.stderr.splitlines() if 'without ' in line]
    return without[0] if without else done.stderr.strip() if done.returncode else None


def names(args):
    """The runs that were asked for."""
    done = subprocess.run([args.bin, 'lab', 'dataset', '--list'], check=True, capture_output=True, text=True)
    chosen = [n for n in done.stdout.split() if not args.only or any(text in n for text in args.only)]
    part, _, parts = args.slice.partition('/')
    return chosen[int(part) - 1 :: int(parts)]


def answer(binary, case, what):
    """What is said of one end's file, or of those of both ends."""
    kind, _, ends = what.partition(', ')
    ends = ('client', 'server') if ends == 'both' else (case.end,)
    name = 'record.{}.pcapng' if kind == 'recorded' else 'cap.{}.pcap'
    paths = [os.path.join(os.path.dirname(case.path), name.format(end)) for end in ends]
    said = common.explain(binary, paths[0], '--exchanges', 'all', *paths[1:])[0]
    # The lab's labels know when a host wrote, not when it read: until then they call it work.
    for connection in said['connections']:
        for span in spans_of(connection):
            if span['cause'] == 'reader_late':
                span['cause'] = f'{span["side"]}_think'
    return said


def score(args):
    """The scores of the bare captures and of what was recorded, and what failed."""
    scores, failed = {f'{kind}, {ends}': Score() for ends in ENDS for kind in ('bare', 'recorded')}, []
    cases = [c for c in common.labelled_in(args.folder) if not args.only or any(t in c.name for t in args.only)]
    cases = [c for c in cases if glob.glob(os.path.join(os.path.dirname(c.path), f'record.{c.end}.pcapng'))]
    asked = [
        (case, what)
        for case in cases
        for what in scores
        # Both ends are explained on the clock of the client, and so held against the label of its tap.
        if what.endswith(case.end) or what.endswith('both') and case.end == 'client'
    ]
    for case, what, said in common.answered(args.jobs, asked, lambda case, what: answer(args.bin, case, what), failed):
        for check in case.checks:
            result = judge(check, said, check['connections'], False, 0.0, 0.0)
            scores[what].add(case, check, result)
            missed = not all(hit for hit, *_ in result.parts)
            off = result.verdict not in (None, RIGHT) or result.forbidden or missed
            if off and (args.verbose or what.startswith('recorded') and not args.quiet):
                print(f'{what:<17}', accuracy.line(case, check, result))
    return scores, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--folder', default=os.path.join(common.ROOT, 'target', 'recorded'))
    parser.add_argument('--only', action='append', default=[], help='runs with this in their names')
    parser.add_argument('--slice', default='1/1', help='every M-th run, from the N-th')
    parser.add_argument('--score-only', action='store_true', help='of what is in the folder')
    parser.add_argument('--fresh', action='store_true', help='make all runs anew')
    parser.add_argument('--verbose', action='store_true', help='what is off in bare captures, too')
    parser.add_argument('--quiet', action='store_true', help='the table only')
    parser.add_argument('--jobs', type=int)
    for name in ('min-dominant', 'min-ms', 'max-wrong', 'max-forbidden'):
        parser.add_argument('--' + name, type=float)
    args = parser.parse_args()
    if not args.score_only:
        if os.geteuid() != 0:
            print('SKIP: root is needed for hosts of its own and kernel events')
            return 0
        why = no_events(args.bin)
        if why:
            print(f'SKIP: {why}')
            return 0
        if args.fresh:
            shutil.rmtree(args.folder, ignore_errors=True)
        os.makedirs(args.folder, exist_ok=True)
        for name in names(args):
            make(args, name)
    scores, failed = score(args)
    print(HEADING)
    for what, tally in scores.items():
        print(tally.all.row(what), f'  clean {tally.clean[0]} of {tally.clean[1]}')
    for text in failed:
        print(f'NO ANSWER {text}')
    limits = {n: getattr(args, n.replace('-', '_')) for n in ('min-dominant', 'min-ms', 'max-wrong', 'max-forbidden')}
    off = misses(scores['recorded, both'].measures(), limits) + failed
    for text in off:
        print(f'MISSED {text}')
    return 1 if off else 0


if __name__ == '__main__':
    sys.exit(main())
