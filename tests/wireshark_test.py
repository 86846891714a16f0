#!/usr/bin/env python3
"""The plugin for Wireshark, installed and run by tshark on ten annotated captures: each packet has the fields that the JSON
says of the moment at which it passed, and filters select as many packets as that.

    tests/wireshark_test.py [--bin PATH]
"""

import argparse
import bisect
import datetime
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import common  # noqa: E402

CAPTURES = (
    'zeek__smtp_bdat.pcap',
    'loopback_write_write_read.pcap',
    'zeek__krb_kerberos_tso.pcapng',
    'suricata-verify__http-gap-simple_input.pcap',
    'zeek__tcp_reassembly.pcap',
    'PcapPlusPlus__raw_ip.pcap',
    'lab/small_split_nagle/cap.client.pcap.zst',
    'lab/loss_tail_tlp/cap.client.pcap.zst',
    'lab/slow_reader_6s_rcvbuf8k/cap.client.pcap.zst',
    'lab/keepalive_gap1s_nodelay/cap.client.pcap.zst',
)
FIELDS = ('cause', 'ms', 'side', 'connection', 'exchange', 'part', 'span', 'finding', 'name', 'owner')


def nanos(text):
    seconds, fraction = text.split('.')
    return int(seconds) * 10**9 + int(fraction[:9].ljust(9, '0'))


def moment_zero(document):
    start = document['capture']['start']
    at = datetime.datetime.fromisoformat(start[:19] + '+00:00')
    return int(at.timestamp()) * 10**9 + int(start[20:29])


class Said:
    """What the JSON says of a moment in a connection."""

    def __init__(self, document):
        self.start = moment_zero(document)
        self.spans, self.evidence = {}, {}
        findings = {(f['cause'], f['side']): f['id'] for f in document['findings']}
        for c in document['connections']:
            rows = []
            parts = [('setup', None, c['setup'])] if c['setup'] else []
            parts += [('exchange', x, x) for x in c['exchanges']] + [('gap', None, g) for g in c['gaps']]
            for part, exchange, holder in parts:
                for s in holder['spans']:
                    row = {
                        'cause': s['cause'],
                        'ms': (s['end_ns'] - s['start_ns']) / 1e6,
                        'side': s['side'] or '',
                        'connection': c['id'],
                        'exchange': exchange['id'] if exchange else '',
                        'part': part,
                        'span': s['id'],
                        'finding': findings.get((s['cause'], s['side']), ''),
                        'name': exchange.get('name', '') if exchange else '',
                        'owner': common.CAUSES[s['cause']]['owner'],
                    }
                    rows.append((s['end_ns'], s['start_ns'], row))
                    if common.CAUSES[s['cause']]['class'] != 'I':
                        for key in s['frames']['key']:
                            self.evidence.setdefault(key, set()).add(s['cause'])
            self.spans[c['tshark_stream']] = sorted(rows, key=lambda r: (r[1], r[0]))

    def of(self, stream, time):
        """The row of the span that holds the moment; of two that meet there the one that ends."""
        rows = self.spans.get(stream, [])
        i = bisect.bisect_left([r[0] for r in rows], time - self.start)
        return rows[i][2] if i < len(rows) and rows[i][1] <= time - self.start else None


def tshark(environment, path, *arguments):
    command = ['tshark', '-n', '-C', 'tcpwhy', '-r', path, *arguments]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode or 'Lua' in done.stderr:
        raise common.Failed(f'{" ".join(command)}: {done.stderr.strip()[-300:]}')
    return done.stdout.splitlines()


def one(binary, folder, environment, name):
    """Packets compared, and what is wrong."""
    notes = os.path.join(folder, name.replace('/', '_') + '.pcapng')
    document = common.explain(
        binary, os.path.join(ROOT, 'captures', name), '--annotate', notes, '--names', '--exchanges', 'all'
    )[0]
    said, wrong, counts, evidence = Said(document), [], {}, 0
    fields = ['frame.number', 'frame.time_epoch', 'tcp.stream', 'tcpwhy.evidence']
    fields += [f'tcpwhy.{field}' for field in FIELDS]
    options = [word for field in fields for word in ('-e', field)]
    rows = tshark(environment, notes, '-T', 'fields', '-E', 'separator=/t', *options)
    causes, longer, exchanges = {}, 0, {}
    for line in rows:
        number, time, stream, proof, *values = line.split('\t')
        row = said.of(int(stream), nanos(time)) if stream.isdigit() else None
        shown = dict(zip(FIELDS, values))
        if row is None:
            if any(values):
                wrong.append(f'{name} {number}: {shown}, and nothing is said of it')
            continue
        want = {field: str(row[field]) for field in FIELDS if field != 'ms'}
        if any(shown[field] != want[field] for field in want) or abs(float(shown['ms']) - row['ms']) > 1e-9:
            wrong.append(f'{name} {number}: {shown} is not {row}')
        if set(filter(None, proof.split(','))) != said.evidence.get(int(number), set()):
            wrong.append(f'{name} {number}: evidence of {proof}, not {said.evidence.get(int(number))}')
        evidence += bool(proof)
        causes[row['cause']] = causes.get(row['cause'], 0) + 1
        longer += row['ms'] > 40
        key = (row['connection'], row['exchange'])
        exchanges[key] = exchanges.get(key, 0) + 1
    counts['tcpwhy.ms > 40'] = longer
    counts['tcpwhy.evidence'] = evidence
    if causes:
        cause = max(causes, key=causes.get)
        counts[f'tcpwhy.cause == "{cause}"'] = causes[cause]
        key = max((k for k in exchanges if k[1]), key=exchanges.get, default=None)
        if key:
            counts[f'tcpwhy.connection == {key[0]} && tcpwhy.exchange == {key[1]}'] = exchanges[key]
    # every start of tshark costs: one filter for a capture, another kind for the next
    chosen = sorted(counts)[CAPTURES.index(name) % len(counts)]
    for expression, count in [(chosen, counts[chosen])]:
        found = len(tshark(environment, notes, '-Y', expression, '-T', 'fields', '-e', 'frame.number'))
        if found != count:
            wrong.append(f'{name}: {expression} selects {found} packets, the JSON has {count}')
    return len(rows), 1, wrong


def profile(environment, notes):
    """Colours and columns of the profile are understood: no packet is coloured by a rule that is not there."""
    wrong = []
    coloured = tshark(environment, notes, '-T', 'fields', '-e', 'frame.coloring_rule.name', '--color')
    rules = {line for line in coloured if line}
    if not any('tcpwhy: TCP' in rule or 'tcpwhy: proves' in rule for rule in rules):
        wrong.append(f'colours: {rules}')
    if not any('nagle_delayed_ack' in line for line in tshark(environment, notes)):
        wrong.append('columns: the cause has none')
    expert = tshark(
        environment,
        notes,
        '-Y',
        '_ws.expert.group == "Sequence" && tcpwhy.avoidable',
        '-T',
        'fields',
        '-e',
        'tcpwhy.evidence',
    )
    if not any('nagle_delayed_ack' in line for line in expert):
        wrong.append('expert information: nothing says that a stall could be avoided')
    return wrong


def stall(server):
    """A few requests by two writes each: 40 ms of waiting in each."""

    def serve():
        connection, _ = server.accept()
        with connection:
            while len(connection.recv(8, socket.MSG_WAITALL)) == 8:
                connection.sendall(b'ok')

    threading.Thread(target=serve, daemon=True).start()
    with socket.create_connection(server.getsockname()) as client:
        for _ in range(6):
            client.sendall(b'head')
            client.sendall(b'body')
            client.recv(2)


def extcap(environment, folder, name):
    """The interface is there, explains a file, and captures on loopback; what is wrong, and what could not be tried."""
    wrong, path = [], os.path.join(ROOT, 'captures', name)
    listed = subprocess.run(['tshark', '-D'], capture_output=True, text=True, env=environment, check=False).stdout
    if 'tcpwhy: explained capture' not in listed:
        return [f'extcap: {listed}'], ''
    count = ['-Y', 'tcpwhy.ms > 40', '-T', 'fields', '-e', 'frame.number', '-e', 'tcpwhy.cause']
    given = ['tshark', '-n', '-i', 'tcpwhy', '-o', f'extcap.tcpwhy.file:{path}', *count]
    done = subprocess.run(given, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    if done.stdout.splitlines() != tshark(environment, os.path.join(folder, name + '.pcapng'), *count):
        wrong.append(f'extcap: a file: {done.stdout[-200:]} {done.stderr[-200:]}')
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]
        live = ['tshark', '-n', '-i', 'tcpwhy', '-f', f'tcp port {port}', '-o', 'extcap.tcpwhy.nic:lo']
        live += ['-o', 'extcap.tcpwhy.seconds:1', '-T', 'fields', '-e', 'tcpwhy.cause']
        with subprocess.Popen(
            live, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as capturing:
            # a busy machine begins late
            deadline = time.monotonic() + 60
            while capturing.poll() is None and time.monotonic() < deadline:
                stall(server)
            out, said = capturing.communicate(timeout=60)
    if 'permission' in said:
        return wrong, 'live capture not tried: no permission'
    if out.split().count('nagle_delayed_ack') < 5:
        wrong.append(f'extcap: live: {out.split()} {said[-300:]}')
    return wrong, ''


# in the program with windows: how many packets have a cause
PROBE = """
local cause, n = Field.new('tcpwhy.cause'), 0
local tap = Listener.new('frame')
function tap.packet() if cause() then n = n + 1 end end
function tap.draw()
    local out = gui_enabled() and io.open(os.getenv('TCPWHY_PROBE'), 'w')
    if out then out:write(n, '\\n') out:close() end
end
"""


def gui(environment, folder, name):
    """Wireshark itself, on a screen that nobody sees: the plugin loads, its menu with it, and packets have their fields."""
    if not all(shutil.which(need) for need in ('wireshark', 'Xvfb')):
        return [], 'windows not tried: no wireshark or no Xvfb'
    notes, probe, said = (os.path.join(folder, n) for n in (name + '.pcapng', 'probe.lua', 'probe.txt'))
    with open(probe, 'w', encoding='utf8') as f:
        f.write(PROBE)
    packets = len(tshark(environment, notes, '-Y', 'tcpwhy.cause', '-T', 'fields', '-e', 'frame.number'))
    # the screen takes a number that is free, and says which
    with subprocess.Popen(
        ['Xvfb', '-displayfd', '1', '-nolisten', 'tcp'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as screen:
        try:
            own = dict(environment, DISPLAY=f':{screen.stdout.readline().strip()}', TCPWHY_PROBE=said)
            own |= {'QT_QPA_PLATFORM': 'xcb', 'XDG_RUNTIME_DIR': folder}
            command = ['wireshark', '-C', 'tcpwhy', '-r', notes, '-X', f'lua_script:{probe}']
            with subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=own
            ) as windows:
                deadline, counted = time.monotonic() + 120, ''
                while windows.poll() is None and time.monotonic() < deadline and counted != f'{packets}\n':
                    time.sleep(0.2)
                    if os.path.exists(said):
                        with open(said, encoding='utf8') as f:
                            counted = f.read()
                windows.kill()
                told = windows.communicate()[0]
        finally:
            screen.kill()
    if counted != f'{packets}\n' or 'Lua' in told:
        return [f'windows: {counted!r} packets with a cause, not {packets}: {told[-400:]}'], ''
    return [], ''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    binary = parser.parse_args().bin
    wrong, packets, filters = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        own = os.path.join(folder, 'wireshark')
        subprocess.run([binary, 'wireshark', '--install', '--dir', own], capture_output=True, check=True)
        environment = dict(
            os.environ,
            WIRESHARK_PLUGIN_DIR=os.path.join(own, 'plugins'),
            WIRESHARK_EXTCAP_DIR=os.path.join(own, 'extcap'),
            WIRESHARK_CONFIG_DIR=own,
            HOME=folder,
        )
        with ThreadPoolExecutor(2) as pool:
            for read, tried, faults in pool.map(lambda name: one(binary, folder, environment, name), CAPTURES):
                packets, filters, wrong = packets + read, filters + tried, wrong + faults
        wrong += profile(environment, os.path.join(folder, CAPTURES[0] + '.pcapng'))
        # named besides, where a folder has it already: the first one counts
        again = ['-X', f'lua_script:{own}/plugins/tcpwhy.lua', '-Y', 'tcpwhy.cause']
        if not tshark(environment, os.path.join(folder, CAPTURES[0] + '.pcapng'), *again):
            wrong.append('loaded twice: no packet has a cause')
        faults, left_out = extcap(environment, folder, CAPTURES[0])
        wrong += faults
        faults, no_windows = gui(environment, folder, CAPTURES[0])
        wrong += faults
        left_out = '; '.join(filter(None, (left_out, no_windows)))
        printed = subprocess.run([binary, 'wireshark'], capture_output=True, check=True).stdout
        with open(os.path.join(own, 'plugins', 'tcpwhy.lua'), 'rb') as f:
            if f.read() != printed:
                wrong.append('what is printed is not what is installed')
        full = subprocess.run([binary, 'wireshark', '--install', '--dir', '/dev/null'], capture_output=True, text=True)
        if full.returncode != 3 or 'cannot write /dev/null' not in full.stderr:
            wrong.append(f'a folder that cannot be: {full}')
    for fault in wrong[:20]:
        print(fault[:500])
    print(
        f'{packets} packets of {len(CAPTURES)} captures, {filters} filters, an interface: {len(wrong)} faults; {left_out}'.rstrip(
            '; '
        )
    )
    return 1 if wrong or packets < 500 else 0


if __name__ == '__main__':
    sys.exit(main())
