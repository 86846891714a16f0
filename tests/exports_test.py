#!/usr/bin/env python3
"""What `explain` writes for other tools, read by their own schemas: folded stacks, OTLP, Perfetto.

On every bundled capture: the times in each of the three add up, by server or connection and cause, to the budgets of the JSON,
to the nanosecond. Then what may go wrong: a collector that refuses, is busy, leaves spans out; a full disk; many tracks.

    tests/exports_test.py [--bin PATH]

Needs opentelemetry-proto and perfetto of scripts/tools.txt; without them it ends with code 75 and says so.
"""

import argparse
import base64
import collections
import glob
import http.server
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import common  # noqa: E402

try:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2
except ImportError as error:
    print(f'SKIP: {error}; scripts/setup.sh test installs it from scripts/tools.txt')
    sys.exit(75)

IDS = ('traceId', 'spanId', 'parentSpanId')


def captures():
    folder = os.path.join(ROOT, 'captures')
    return sorted(glob.glob(os.path.join(folder, '*.pcap*')) + glob.glob(os.path.join(folder, 'lab', '*', '*client*')))


def run(binary, *arguments):
    """Exit code and standard error."""
    done = subprocess.run(
        [binary, 'explain', *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    return done.returncode, done.stderr.decode()


def budgets(document):
    """{connection: {cause: ns}} of setup and exchanges, and of gaps."""
    connections = document['connections']
    return tuple({c['id']: c[name] for c in connections if c[name]} for name in ('budget', 'gap_budget'))


def omitted(document):
    """The same of what is only summed."""
    connections = document['connections']
    out = []
    for name in ('exchanges_omitted', 'gaps_omitted'):
        out.append({c['id']: c[name]['budget'] for c in connections if c.get(name)})
    return out


def total(*parts):
    """Sums of {key: {cause: ns}}."""
    out = collections.defaultdict(collections.Counter)
    for part in parts:
        for key, times in part.items():
            out[key].update(times)
    return {k: {c: n for c, n in v.items() if n} for k, v in out.items() if any(v.values())}


def folded(path, document):
    """What is wrong with the folded stacks."""
    said = collections.defaultdict(collections.Counter)
    with open(path, encoding='utf8') as f:
        for line in f:
            stack, ns = line.rstrip('\n').rsplit(' ', 1)
            server, cause, *side = stack.split(';')
            assert side in ([], ['client'], ['server'], ['network'], ['in sum']), line
            said[server][cause] += int(ns)
    servers = {c['id']: c['server'] for c in document['connections']}
    busy, idle = budgets(document)
    expected = collections.defaultdict(collections.Counter)
    for part, suffix in ((busy, ''), (idle, ' idle')):
        for connection, times in part.items():
            expected[servers[connection] + suffix].update(times)
    return [] if total(said) == total(expected) else [f'folded: {total(said)} is not {total(expected)}']


def decoded(lines):
    """Spans as the official schema reads them. OTLP writes ids in hexadecimal where the JSON of protobuf has base64."""
    spans = []
    for line in lines:
        document = json.loads(line)
        for resource in document['resourceSpans']:
            for scope in resource['scopeSpans']:
                for span in scope['spans']:
                    for name in IDS:
                        if name in span:
                            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
        request = json_format.ParseDict(document, ExportTraceServiceRequest())
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                spans += scope.spans
    return spans


def attributes(span):
    return {a.key: getattr(a.value, a.value.WhichOneof('value')) for a in span.attributes}


def otlp(spans, document):
    """What is wrong with the spans."""
    by_id, wrong = {}, []
    for span in spans:
        if len(span.trace_id) != 16 or len(span.span_id) != 8 or span.span_id in by_id:
            wrong.append(f'otlp: ids of {span.name}')
        by_id[span.span_id] = span
    busy, idle, left = (collections.defaultdict(collections.Counter) for _ in range(3))
    for span in spans:
        its = attributes(span)
        parent = by_id.get(span.parent_span_id)
        if parent is None:
            if span.parent_span_id or not span.name.startswith('connection to '):
                wrong.append(f'otlp: {span.name} has no parent')
            for key, ns in its.items():
                if key.startswith(('tcpwhy.exchanges_omitted.', 'tcpwhy.gaps_omitted.')):
                    left[its['tcpwhy.connection']][key.rsplit('.', 1)[1].removesuffix('_ns')] += ns
            continue
        if span.trace_id != parent.trace_id:
            wrong.append(f'otlp: {span.name} is in another trace than its parent')
        if 'tcpwhy.cause' not in its:
            continue
        if (
            not parent.start_time_unix_nano
            <= span.start_time_unix_nano
            <= span.end_time_unix_nano
            <= parent.end_time_unix_nano
        ):
            wrong.append(f'otlp: {its["tcpwhy.span"]} lies outside of its parent')
        connection = attributes(by_id[parent.parent_span_id])['tcpwhy.connection']
        to = idle if attributes(parent)['tcpwhy.part'] == 'gap' else busy
        to[connection][its['tcpwhy.cause']] += span.end_time_unix_nano - span.start_time_unix_nano
    want_busy, want_idle = budgets(document)
    if total(busy, idle, left) != total(want_busy, want_idle):
        wrong.append(f'otlp: {total(busy, idle, left)} is not {total(want_busy, want_idle)}')
    return wrong


def perfetto(path, document):
    """What is wrong with the trace."""
    trace, wrong = perfetto_trace_pb2.Trace(), []
    with open(path, 'rb') as f:
        trace.ParseFromString(f.read())
    tracks, open_slices = {}, collections.defaultdict(list)
    sums = {'busy': collections.defaultdict(collections.Counter), 'gap': collections.defaultdict(collections.Counter)}
    flights, frames = collections.Counter(), 0
    for packet in trace.packet:
        if packet.HasField('track_descriptor'):
            track = packet.track_descriptor
            if track.uuid in tracks or (track.parent_uuid and track.parent_uuid not in tracks):
                wrong.append(f'perfetto: track {track.uuid} is there already, or its parent is not')
            tracks[track.uuid] = track
        if not packet.HasField('track_event'):
            continue
        event = packet.track_event
        track, stack = tracks[event.track_uuid], open_slices[event.track_uuid]
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append((packet.timestamp, event))
        elif event.type == event.TYPE_SLICE_END:
            start, begun = stack.pop()
            if 'cause' in begun.categories:
                part = 'gap' if 'gap' in stack[-1][1].categories else 'busy'
                sums[part][int(track.name.split()[0])][begun.name] += packet.timestamp - start
        elif event.type == event.TYPE_COUNTER:
            if event.counter_value < 0 or not track.HasField('counter'):
                wrong.append(f'perfetto: counter {track.name} is {event.counter_value}')
            if track.name.endswith(': in flight'):
                flights[track.uuid] = max(flights[track.uuid], event.counter_value)
        elif event.type == event.TYPE_INSTANT:
            frames += 1
    if any(open_slices.values()):
        wrong.append('perfetto: slices stay open')
    if len([t for t in tracks.values() if not t.parent_uuid]) != len(document['connections']):
        wrong.append('perfetto: not a track for each connection')
    want = [total(*pair) for pair in zip(budgets(document), omitted(document))]
    left = omitted(document)
    said = [total(sums['busy'], left[0]), total(sums['gap'], left[1])]
    if said != [total(p) for p in budgets(document)]:
        wrong.append(f'perfetto: {said} is not {want}')
    if flights and not max(flights.values()):
        wrong.append('perfetto: nothing was ever in flight')
    return wrong


class Collector(http.server.BaseHTTPRequestHandler):
    """Keeps what is posted; answers what it is told."""

    bodies, answer = [], (200, b'{}')

    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        Collector.bodies.append((self.path, self.headers['content-type'], body))
        status, said = Collector.answer
        self.send_response(status)
        self.send_header('content-length', str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


def collectors(binary, folder):
    """What is wrong with sending."""
    wrong = []
    capture = os.path.join(ROOT, 'captures', 'zeek__smtp_bdat.pcap')
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f'http://127.0.0.1:{server.server_port}'
    file = os.path.join(folder, 'spans.jsonl')

    def expect(what, told, code, *words):
        if told[0] != code or any(w not in told[1] for w in words) or told[1].count('\n') > 1:
            wrong.append(f'{what}: {told}')

    expect('a collector', run(binary, capture, '-o', '/dev/null', '--otlp', address), 0, '284 spans are at')
    run(binary, capture, '-o', '/dev/null', '--otlp', file)
    with open(file, 'rb') as f:
        lines = f.read().splitlines()
    posted = [('/v1/traces', 'application/json', line) for line in lines]
    if Collector.bodies != posted:
        wrong.append('what was posted is not what a file holds')
    sending = (binary, capture, '-q', '-o', '/dev/null', '--otlp', address)
    Collector.answer = (503, b'try\nagain')
    expect('503', run(*sending), 3, '503', 'busy', '--otlp FILE')
    Collector.answer = (404, b'')
    expect('404', run(*sending), 3, '404', '/v1/traces')
    Collector.answer = (302, b'')
    expect('302', run(*sending), 3, '302')
    Collector.answer = (200, b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}')
    expect('a part', run(*sending), 3, 'left out 2', 'too old')
    server.shutdown()
    server.server_close()
    expect('nobody listens', run(*sending), 3, 'refused', '--otlp FILE')
    for option in ('--otlp', '--perfetto', '--folded'):
        full = run(binary, capture, '-q', '-o', '/dev/null', option, '/dev/full')
        expect(f'{option} on a full disk', full, 3, 'No space left')
        twice = run(binary, capture, '-o', file, option, file)
        expect(f'{option} and the answer in one file', twice, 2, 'named for two outputs')
    return wrong


def many_connections(path, count):
    """Handshakes only."""
    with open(path, 'wb') as f:
        f.write(struct.pack('<IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for n in range(count):
            for i, (back, flags) in enumerate(((0, 2), (1, 18), (0, 16))):
                ends = [(0x0A000001, 1024 + n), (0x0A000002, 80)]
                (src, sport), (dst, dport) = ends[::-1] if back else ends
                tcp = struct.pack(
                    '>HHIIBBHHH', sport, dport, 100 if i < 2 else 101, 101 if i else 0, 80, flags, 8192, 0, 0
                )
                ip = struct.pack('>BBHHHBBHII', 69, 0, 40, 0, 0, 64, 6, 0, src, dst)
                f.write(struct.pack('<IIII', 1_700_000_000 + n // 1000, n % 1000 * 1000 + i, 40, 40) + ip + tcp)


def tracks(binary, folder):
    """Ten thousand tracks are said and written."""
    capture, trace = os.path.join(folder, 'many.pcap'), os.path.join(folder, 'many.pftrace')
    many_connections(capture, 2000)
    code, said = run(binary, capture, '-o', '/dev/null', '--perfetto', trace)
    if code or '14000 tracks' not in said or '--connection' not in said:
        return [f'many tracks: {code} {said}']
    return perfetto(trace, common.explain(binary, capture)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    binary = parser.parse_args().bin
    wrong, read, spans = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ('out.json', 'out.folded', 'out.jsonl', 'out.pftrace')]
        options = ['--json', '-o', paths[0], '--folded', paths[1], '--otlp', paths[2], '--perfetto', paths[3], '-q']
        for path in captures():
            # some of the exchanges only as sums
            for more in ([], ['--exchanges', 'worst=3']):
                code, said = run(binary, path, *options, *more)
                if code not in (0, 1):
                    wrong.append(f'{path}: exit code {code}: {said}')
                    continue
                with open(paths[0], encoding='utf8') as f:
                    document = json.load(f)
                with open(paths[2], encoding='utf8') as f:
                    found = decoded(f)
                faults = folded(paths[1], document) + otlp(found, document) + perfetto(paths[3], document)
                wrong += [f'{os.path.basename(path)} {more}: {fault}' for fault in faults]
                read, spans = read + 1, spans + len(found)
        wrong += collectors(binary, folder) + tracks(binary, folder)
    for fault in wrong[:20]:
        print(fault[:600])
    print(f'{read} answers in three forms each, {spans} spans: {len(wrong)} faults')
    return 1 if wrong or read < 40 else 0


if __name__ == '__main__':
    sys.exit(main())
