#!/usr/bin/env python3
"""How long a web server and its client wait because `tcpwhy watch` has a processor, by the scheduler's own events: what others do
on the machine does not count, so that it can be measured on a busy one.

    scripts/watch_stalls.py --bin PATH [--with OTHER] [--rounds 3] [--options=--sampled]    as root; nginx, wrk and perf
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import common
import watch_costs
import web_site

SECONDS = 0.8
EVENT = re.compile(r'.*\[(\d+)\]\s+([\d.]+):\s+sched:(\w+):\s+(.*)')
SWITCH = re.compile(r'prev_comm=(.+) prev_pid=(\d+) .*prev_state=(\S+) ==> next_comm=.+ next_pid=(\d+) ')
WAKE = re.compile(r'comm=(.+) pid=(\d+) ')
WAITING = ('nginx', 'wrk')


def waits(lines, own):
    """Seconds in which somebody was ready to run while a thread of `own` ran, the runs of those threads, and the time seen."""
    runs, begun, running, ready = [], {}, {}, set()
    waited, first, last = 0, None, None
    for line in lines:
        found = EVENT.match(line)
        if not found:
            continue
        processor, now, event, rest = found[1], float(found[2]), found[3], found[4]
        if last is not None and ready and own & set(running.values()):
            waited += now - last
        first, last = first if first is not None else now, now
        if event == 'sched_switch' and (switch := SWITCH.match(rest)):
            name, before, state, after = switch.groups()
            (ready.add if state.startswith('R') and name.startswith(WAITING) else ready.discard)(before)
            ready.discard(after)
            if processor in begun:
                runs.append(now - begun.pop(processor))
            if after in own:
                begun[processor] = now
            running[processor] = after
        elif (wake := WAKE.match(rest)) and wake[1].startswith(WAITING) and wake[2] not in running.values():
            ready.add(wake[2])
    return waited, runs, (last or 0) - (first or 0)


def once(binary, options, site, folder):
    """One look at the scheduler, with `watch` and wrk beside."""
    watch, data = watch_costs.Watch(binary, *options), os.path.join(folder, 'perf.data')
    # not its beginning
    time.sleep(0.5)
    load = subprocess.Popen(['wrk', '-t1', '-c8', '-d2s', site.url], stdout=subprocess.DEVNULL)
    time.sleep(0.6)
    events = 'sched:sched_switch,sched:sched_wakeup'
    record = ['perf', 'record', '-q', '-a', '-m', '8M', '-e', events, '-o', data, 'sleep', str(SECONDS)]
    subprocess.run(record, stderr=subprocess.DEVNULL, check=True)
    own = set(os.listdir(f'/proc/{watch.pid}/task'))
    load.wait()
    watch.end()
    script = ['perf', 'script', '-i', data, '-F', 'comm,tid,cpu,time,event,trace']
    return waits(subprocess.run(script, capture_output=True, text=True, check=True).stdout.splitlines(), own)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--with', dest='other', help='another build, in turns')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--options', default='--sampled', help='of watch')
    args = parser.parse_args()
    missing = [tool for tool in ('nginx', 'wrk', 'perf') if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        print(f'missing: {", ".join(missing) or "root"}')
        return 75
    binaries = [os.path.abspath(b) for b in (args.other, args.bin) if b]
    seen, site = {binary: [] for binary in binaries}, web_site.Site('loopback')
    try:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(args.rounds):
                for binary in binaries:
                    seen[binary].append(once(binary, args.options.split(), site, folder))
    finally:
        site.end()
    for binary, rounds in seen.items():
        waited, runs, time_of = (
            sum(r[0] for r in rounds), [run for r in rounds for run in r[1]], sum(r[2] for r in rounds)
        )  # fmt: skip
        print(
            f'{binary}: {len(runs) / time_of:.0f} runs a second of {statistics.mean(runs) * 1e6:.0f} µs, the longest '
            f'{max(runs) * 1e6:.0f}; nginx or wrk waited for {100 * waited / time_of:.2f} % of the time'
        )
    return 0


if __name__ == '__main__':
    sys.exit(main())
