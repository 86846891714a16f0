#!/usr/bin/env python3
"""`--names`: what exchanges are called, beside what tshark reads there; and conversations made here byte by byte.

On bundled captures: an exchange that begins with a request of HTTP/1 carries its method and path without the query and the
status that tshark shows, no other one does, and below TLS the server name. Then Redis, MySQL and PostgreSQL, requests in
pieces, cut by a snap length, repeated; `traceparent` in OTLP; comparison by name; and nothing of a query, a key or a body in
any output.

    tests/names_test.py [--bin PATH]
"""

import argparse
import datetime
import json
import os
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import common  # noqa: E402

FIELDS = (
    'tcp.stream',
    'frame.time_epoch',
    'http.request.method',
    'http.request.uri',
    'http.response.code',
    'tls.handshake.extensions_server_name',
)
# bundled captures in which HTTP or a server name shows
WITH_NAMES = (
    'PcapPlusPlus__raw_ip.pcap',
    'RecordFlux__examples_data_tls_tls13-1.pcap',
    'arkime__pcap_80211http.pcap',
    'suricata-verify__http-gap-simple_input.pcap',
    'zeek__tcp_reassembly.pcap',
    'zeek__tunnels_vxlan-encapsulated-http.pcap',
)
PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
SECRET = 'kept-nowhere'


def nanos(text):
    seconds, fraction = text.split('.')
    return int(seconds) * 10**9 + int(fraction[:9].ljust(9, '0'))


def read_by_tshark(path):
    """Requests, responses and server names as {(stream, ns): ...}, {stream: name}; without putting packets together."""
    command = ['tshark', '-n', '-r', path, '-Y', 'http || tls.handshake.extensions_server_name', '-T', 'fields']
    for option in ('tcp.desegment_tcp_streams:FALSE', 'http.desegment_headers:FALSE', 'http.desegment_body:FALSE'):
        command += ['-o', option]
    for field in FIELDS:
        command += ['-e', field]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    requests, statuses, servers = {}, {}, {}
    for line in done.stdout.splitlines():
        stream, time, method, uri, status, server = line.split('\t')
        if not stream.isdigit():
            continue
        at = (int(stream), nanos(time))
        if method and uri:
            requests.setdefault(at, f'{method} {uri.split("?")[0].split("#")[0]}')
        if status:
            statuses.setdefault(at, int(status.split(',')[0]))
        if server:
            servers.setdefault(int(stream), server)
    return requests, statuses, servers


def start_of(document):
    """Moment 0 in ns since 1970."""
    day, time = document['capture']['start'].rstrip('Z').split('T')
    year, month, date = map(int, day.split('-'))
    hours, minutes, seconds = time.split(':')
    days = datetime.date(year, month, date).toordinal() - datetime.date(1970, 1, 1).toordinal()
    return (days * 86400 + int(hours) * 3600 + int(minutes) * 60) * 10**9 + nanos(seconds)


def beside_tshark(binary, path):
    """Names compared, and what is wrong with them."""
    document = common.explain(binary, path, '--names', '--exchanges', 'all')[0]
    if not document or not document['capture']['start']:
        return 0, []
    requests, statuses, servers = read_by_tshark(path)
    start, compared, wrong = start_of(document), 0, []
    for c in document['connections']:
        stream = c['tshark_stream']
        if stream is None:
            continue
        for x in c['exchanges']:
            name, where = x.get('name'), f'connection {c["id"]} exchange {x["id"]}'
            if stream in servers:
                compared += 1
                if name != f'TLS {servers[stream]}':
                    wrong.append(f'{where}: {name}, tshark has {servers[stream]}')
                continue
            said = requests.get((stream, start + x['start_ns']))
            if (name or '').startswith(('Redis', 'MySQL', 'PostgreSQL')):
                continue
            if name != said and not ((name or '').endswith('…') and (said or '').startswith(name[:-1])):
                wrong.append(f'{where}: {name}, tshark has {said}')
            if not said:
                continue
            compared += 1
            answered = x['response_start_ns']
            status = statuses.get((stream, start + answered)) if answered is not None else None
            if status and status >= 200 and x.get('status') != status:
                wrong.append(f'{where}: status {x.get("status")}, tshark has {status}')
    return compared, wrong


class Capture:
    """Conversations of one client with servers on 127.0.0.1."""

    def __init__(self, snap=65535):
        self.snap, self.time, self.frames, self.next = snap, 0, [], {}

    def packet(self, ports, back, flags, payload=b'', at=None):
        seq, ack = self.next[ports][back], self.next[ports][not back]
        sport, dport = ports[::-1] if back else ports
        tcp = struct.pack('>HHIIBBHHH', sport, dport, at or seq, ack, 80, flags, 8192, 0, 0) + payload
        ip = struct.pack('>BBHHHBBHII', 69, 0, 20 + len(tcp), 0, 0, 64, 6, 0, 0x7F000001, 0x7F000001)
        self.time += 100
        self.frames.append((self.time, ip + tcp))
        if at is None:
            self.next[ports][back] += len(payload) + bool(flags & 3)

    def connect(self, ports):
        self.next[ports] = [1000, 5000]
        for back, flags in ((False, 2), (True, 18), (False, 16)):
            self.packet(ports, back, flags)

    def ask(self, ports, *pieces, answer=b'ok', work=1000, again=False):
        """A request in pieces; its answer `work` microseconds later."""
        if ports not in self.next:
            self.connect(ports)
        for piece in pieces:
            self.packet(ports, False, 24, piece)
            if again:
                self.packet(ports, False, 24, piece, at=self.next[ports][0] - len(piece))
        self.time += work
        self.packet(ports, True, 24, answer)
        self.packet(ports, False, 16)
        self.time += 1000

    def write(self, path):
        with open(path, 'wb') as f:
            f.write(struct.pack('<IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
            for time, data in self.frames:
                kept = data[: self.snap]
                f.write(struct.pack('<IIII', 1_700_000_000 + time // 10**6, time % 10**6, len(kept), len(data)) + kept)
        return path


def names(document):
    return [(x.get('name'), x.get('status')) for c in document['connections'] for x in c['exchanges']]


def http(target, method='GET', *headers):
    return '\r\n'.join([f'{method} {target} HTTP/1.1', 'Host: a', *headers, '', '']).encode()


def redis(*words):
    return f'*{len(words)}\r\n'.encode() + b''.join(f'${len(w)}\r\n{w}\r\n'.encode() for w in words)


def mysql(command, text=b''):
    return struct.pack('<I', len(text) + 1)[:3] + bytes([0, command]) + text


def postgresql(kind, body):
    return kind + struct.pack('>I', len(body) + 4) + body


def conversations(binary, folder):
    """What is wrong with what is made here."""
    made, path = Capture(), os.path.join(folder, 'made.pcap')
    body = SECRET.encode()
    ok, created = b'HTTP/1.1 200 OK\r\n\r\n', b'HTTP/1.1 201 Created\r\n\r\n'
    made.ask((40001, 8080), http(f'/orders?card={SECRET}', 'POST', f'TraceParent: {PARENT}'), body, answer=created)
    made.ask((40001, 8080), http('/list')[:7], http('/list')[7:], answer=ok)
    made.ask((40001, 8080), http('/twice'), answer=ok, again=True)
    made.ask((40001, 8080), body, answer=ok)
    made.ask((40002, 6379), redis('get', SECRET))
    made.ask((40002, 6379), redis('SET', 'k', SECRET)[:6], redis('SET', 'k', SECRET)[6:])
    made.ask((40003, 3306), mysql(3, b'select ' + body))
    made.ask((40003, 3306), mysql(14))
    made.ask((40004, 5432), postgresql(b'Q', b'/* app */ UPDATE ' + body + b'\0'))
    made.ask((40004, 5432), postgresql(b'P', b's\0INSERT ' + body + b'\0\0\0'))
    made.write(path)
    expected = [
        ('POST /orders', 201),
        ('GET /list', 200),
        ('GET /twice', 200),
        (None, None),
        ('Redis GET', None),
        ('Redis SET', None),
        ('MySQL SELECT', None),
        ('MySQL ping', None),
        ('PostgreSQL UPDATE', None),
        ('PostgreSQL INSERT', None),
    ]
    outputs = [os.path.join(folder, name) for name in ('a.json', 'a.jsonl', 'a.pftrace', 'a.folded', 'a.html')]
    command = [binary, 'explain', path, '--names', '-q', '--json', '-o', outputs[0], '--otlp', outputs[1]]
    command += ['--trace-context', '--perfetto', outputs[2], '--folded', outputs[3], '--html', outputs[4]]
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
    text = subprocess.run([binary, path, '--names', '-v'], capture_output=True, check=True).stdout
    wrong = []
    with open(outputs[0], encoding='utf8') as f:
        document = json.load(f)
    if names(document) != expected:
        wrong.append(f'{names(document)} is not {expected}')
    shown = {n['name']: n['count'] for f in document['findings'] for n in f.get('exchange_names', [])}
    if (
        shown.get('POST /orders') != 1
        or b' and others' not in text
        or b'1 x POST /orders' not in text
        or b'POST /orders 201' not in text
    ):
        wrong.append(f'findings: {shown}, or the text')
    for output in outputs:
        with open(output, 'rb') as f:
            if body in f.read():
                wrong.append(f'{os.path.basename(output)} holds what is to be kept nowhere')
    if body in text:
        wrong.append('the text holds what is to be kept nowhere')
    with open(outputs[1], encoding='utf8') as f:
        spans = [s for line in f for s in json.loads(line)['resourceSpans'][0]['scopeSpans'][0]['spans']]
    children = [s for s in spans if s.get('parentSpanId') == PARENT.split('-')[2]]
    if [s['name'] for s in children] != ['POST /orders'] or children[0]['traceId'] != PARENT.split('-')[1]:
        wrong.append(f'trace context: {[s["name"] for s in children]}')
    else:
        causes = [s for s in spans if s.get('parentSpanId') == children[0]['spanId']]
        if not causes or any(s['traceId'] != children[0]['traceId'] for s in causes) or not children[0]['links']:
            wrong.append('trace context: the causes are not below it, or the link is missing')
    return wrong + cut(binary, folder) + compared(binary, folder)


def cut(binary, folder):
    """A short snap length leaves what there is."""
    made = Capture(snap=60)
    made.ask((40001, 8080), http('/a/long/path/to/somewhere'), answer=b'HTTP/1.1 200 OK\r\n\r\n')
    document = common.explain(binary, made.write(os.path.join(folder, 'cut.pcap')), '--names')[0]
    return [] if names(document) == [('GET /a/long/path/to/…', 200)] else [f'cut: {names(document)}']


def compared(binary, folder):
    """A request that became larger has its counterpart by name; without names all of a server are compared."""
    paths = []
    for i, (padding, work) in enumerate((('', 9000), ('x' * 900, 3000))):
        made = Capture()
        for _ in range(8):
            made.ask((40001, 8080), http('/slow', 'GET', f'Cookie: {padding}'), work=work)
            made.ask((40001, 8080), http('/fast', 'GET', f'Cookie: {padding}'), work=500)
        paths.append(made.write(os.path.join(folder, f'side{i}.pcap')))
    command = [binary, 'compare', *paths, '--json', '-q']
    by_name = json.loads(subprocess.run([*command, '--names'], capture_output=True, check=True).stdout)
    by_size = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    rows = {row.get('name'): (row['before']['count'], row['difference_ns']) for row in by_name['shapes']}
    good = set(rows) == {'GET /slow', 'GET /fast'} and rows['GET /slow'][0] == 8
    good = good and abs(rows['GET /slow'][1] + 6_000_000) < 500_000 and abs(rows['GET /fast'][1]) < 500_000
    together = [(row['before']['count'], row['after']['count']) for row in by_size['shapes']]
    good = good and by_size['unmatched'] == {'before': 0, 'after': 0} and together == [(16, 16)]
    return [] if good else [f'compare: {rows}, by server {together} but for {by_size["unmatched"]}']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('captures', nargs='*', help='instead of the bundled ones')
    args = parser.parse_args()
    wrong, total = [], 0
    for path in args.captures or [os.path.join(ROOT, 'captures', name) for name in WITH_NAMES]:
        compared_here, faults = beside_tshark(args.bin, path)
        total += compared_here
        wrong += [f'{os.path.basename(path)}: {fault}' for fault in faults]
    with tempfile.TemporaryDirectory() as folder:
        wrong += conversations(args.bin, folder)
    for fault in wrong[:20]:
        print(fault[:400])
    print(f'{total} names beside tshark, 10 of made conversations: {len(wrong)} faults')
    return 1 if wrong or total < (1 if args.captures else 10) else 0


if __name__ == '__main__':
    sys.exit(main())
