#!/usr/bin/env python3
"""`tcpwhy mcp` asked by the official client, in both generations of the protocol: it lists the tools, each answers what the
command says, an answer stays below 20 kB, and nothing outside of the root is read. Then lines that no client sends.

    tests/mcp_test.py [--bin PATH]

Needs `mcp` of scripts/tools.txt; without it ends with code 75 and says so.
"""

import argparse
import asyncio
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import common  # noqa: E402

try:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client
except ImportError as error:
    print(f'SKIP: {error}; scripts/setup.sh test installs it from scripts/tools.txt')
    sys.exit(75)

MOST = 20_000
SMTP = 'zeek__smtp_bdat.pcap'
VERSION, CAPABILITIES = 'io.modelcontextprotocol/protocolVersion', 'io.modelcontextprotocol/clientCapabilities'


def folder_of_captures(folder):
    """A root with captures, and beside it what nobody may read."""
    root, outside = os.path.join(folder, 'root'), os.path.join(folder, 'outside')
    os.mkdir(root)
    os.mkdir(outside)
    for name in (SMTP, 'loopback_write_write_read.pcap', 'PcapPlusPlus__raw_ip.pcap'):
        shutil.copy(os.path.join(ROOT, 'captures', name), root)
    shutil.copy(os.path.join(ROOT, 'captures', SMTP), os.path.join(outside, 'secret.pcap'))
    os.symlink(os.path.join(outside, 'secret.pcap'), os.path.join(root, 'link.pcap'))
    os.mkfifo(os.path.join(root, 'pipe.pcap'))
    with open(os.path.join(root, 'note.txt'), 'w', encoding='utf8') as f:
        f.write('no capture')
    many(os.path.join(root, 'many.pcap'), 3000)
    return root


def many(path, count):
    """Connections of one request each, to as many servers."""
    with open(path, 'wb') as f:
        f.write(struct.pack('<IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for n in range(count):
            packets = ((0, 2, 0), (1, 18, 0), (0, 16, 0), (0, 24, 100), (1, 24, 300), (0, 16, 0))
            for at, (back, flags, size) in enumerate(packets):
                ends = [(0x0A000001, 40000), (0x0A010000 + n, 80)]
                (src, sport), (dst, dport) = ends[::-1] if back else ends
                seq = 1 + (100 if not back and at > 3 else 0) if at else 0
                ack = {1: 1, 2: 1, 3: 1, 4: 101, 5: 301}.get(at, 0)
                seq = 0 if at == 1 else seq
                tcp = struct.pack('>HHIIBBHHH', sport, dport, seq, ack, 80, flags, 8192, 0, 0) + bytes(size)
                ip = struct.pack('>BBHHHBBHII', 69, 0, 20 + len(tcp), 0, 0, 64, 6, 0, src, dst)
                f.write(struct.pack('<IIII', 1_700_000_000 + n, at * 20000, len(ip + tcp), len(ip + tcp)) + ip + tcp)


async def ask(binary, root, mode):
    """What is wrong in one generation."""
    wrong = []
    parameters = StdioServerParameters(command=binary, args=['mcp', '--root', root])
    async with Client(stdio_client(parameters, errlog=subprocess.DEVNULL), mode=mode) as client:

        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            text = ''.join(block.text for block in result.content)
            if len(json.dumps(text, ensure_ascii=False).encode()) > MOST:
                wrong.append(f'{tool}: {len(text)} characters')
            return result.is_error, text

        async def expect(what, told, *words, fails=False):
            failed, text = told
            if failed != fails or any(word not in text for word in words):
                wrong.append(f'{what}: {failed}, {text[:300]!r}, wanted {words}')

        tools = (await client.list_tools()).tools
        names = [tool.name for tool in tools]
        if names != ['explain', 'exchange', 'why_not', 'predict', 'compare', 'causes']:
            wrong.append(f'tools: {names}')
        if not all(tool.annotations.read_only_hint for tool in tools):
            wrong.append('not all tools are said to be read-only')
        document = common.explain(binary, os.path.join(root, SMTP))[0]
        headline = document['summary']['headline'].split('.')[0]
        frames = '>'.join(str(key) for key in document['findings'][1]['evidence'][0]['key'])
        await expect('explain', await call('explain', file=SMTP), headline, 'nagle_delayed_ack', frames)
        await expect('one connection', await call('explain', file=SMTP, connection='1'), '127.0.0.1:38718', 'MSS')
        # What an answer says of options can be asked for.
        short = await call('explain', file=SMTP)
        await expect('how to see more', short, 'and 29 shorter: --top 32', '-v shows other systems')
        long = await call('explain', file=SMTP, top=32, verbose=True)
        await expect('all rows, all systems', long, 'Python: ')
        if 'shorter: --top' in long[1] or 'shows other systems' in long[1]:
            wrong.append('more of an answer was asked for, and it says how to ask for it')
        by_name = await call('explain', file='PcapPlusPlus__raw_ip.pcap', names=True)
        await expect('names', by_name, ' x GET /')
        one = await call('exchange', file=SMTP, connection='1', exchange=19)
        await expect('exchange', one, 'nagle_delayed_ack', '48.2 ms', '102')
        await expect('why_not', await call('why_not', file=SMTP, cause='send_buffer'), 'send_buffer', 'connection 1')
        foretold = await call('predict', rtt='200ms', request='16KiB', response='20KiB', **{'server-time': '100ms'})
        await expect('predict', foretold, '900 ms', 'slow_start')
        await expect('like', await call('predict', like=SMTP), 'connection 1')
        same = await call('compare', before=SMTP, after=SMTP)
        await expect('compare', same, 'no difference beyond chance')
        await expect('causes', await call('causes'), 'nagle_delayed_ack', 'tail_loss_probe')
        await expect('a cause', await call('causes', id='nagle_delayed_ack'), 'TCP_NODELAY')
        await expect('many', await call('explain', file='many.pcap'), '3000')
        await expect('all of a port', await call('explain', file='many.pcap', connection=':80'), '3000')
        outside = os.path.join(os.path.dirname(root), 'outside', 'secret.pcap')
        for name in ('../outside/secret.pcap', outside, 'link.pcap', '/etc/passwd', '/no/such/file', '../root2'):
            told = await call('explain', file=name)
            await expect(name, told, 'is not within the folder of captures', SMTP, fails=True)
            if 'nagle' in told[1]:
                wrong.append(f'{name} was read')
        absolute = os.path.join(root, SMTP)
        await expect('absolute, but within', await call('explain', file=absolute), headline)
        await expect('a pipe', await call('explain', file='pipe.pcap'), 'is no file', fails=True)
        await expect('a folder', await call('explain', file='.'), 'is no file', fails=True)
        await expect('no such file', await call('explain', file='x.pcap'), 'there is no x.pcap', SMTP, fails=True)
        await expect('no capture', await call('explain', file='note.txt'), 'note.txt', fails=True)
        await expect('no argument', await call('explain'), 'file is missing', fails=True)
        await expect('a strange one', await call('explain', file=SMTP, output='x'), 'no argument output', fails=True)
        option = await call('explain', file=SMTP, connection='1 --output=x')
        await expect('an option in a value', option, 'connection', fails=True)
        await expect('a strange cause', await call('causes', id='nagel'), 'nagel', fails=True)
        await expect('a strange time', await call('predict', rtt='soon'), 'rtt', fails=True)
    return [f'{mode}: {fault}' for fault in wrong]


def raw(binary, root, *lines):
    """The replies to lines as they stand."""
    text = b''.join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b'\n' for line in lines)
    done = subprocess.run([binary, 'mcp', '--root', root], input=text, capture_output=True, timeout=60, check=False)
    if done.returncode:
        raise common.Failed(f'exit code {done.returncode}: {done.stderr.decode()[-200:]}')
    if any(len(line) > MOST for line in done.stdout.splitlines()):
        raise common.Failed('a message is longer than 20 kB')
    return [json.loads(line) for line in done.stdout.splitlines()]


def odd_lines(binary, root):
    """What is wrong with replies to what no client sends."""
    wrong = []

    def request(number, method, meta=None, **params):
        params = params | ({'_meta': meta} if meta is not None else {})
        return {'jsonrpc': '2.0', 'id': number, 'method': method, 'params': params}

    def expect(what, replies, *codes):
        found = [r.get('error', {}).get('code', 'ok') for r in replies]
        if found != list(codes):
            wrong.append(f'{what}: {replies}')

    ping = request(1, 'ping')
    expect('no JSON', raw(binary, root, b'{', b'', ping), -32700, 'ok')
    expect('bytes', raw(binary, root, b'\xff\xfe', ping), -32700, 'ok')
    expect('too long', raw(binary, root, b'"' + b'x' * 3_000_000 + b'"', ping), -32600, 'ok')
    expect('no method', raw(binary, root, {'id': 1}, 7, 'x', []), *[-32600] * 4)
    expect('unknown', raw(binary, root, request(1, 'resources/list'), request(2, 'x' * 1000)), -32601, -32601)
    expect('notifications', raw(binary, root, {'method': 'notifications/initialized'}, {'id': 4, 'result': {}}))
    expect('no tool', raw(binary, root, request(1, 'tools/call', name='rm'), request(2, 'tools/call')), -32602, -32602)
    stateless = {VERSION: '2026-07-28', CAPABILITIES: {}}
    expect('discover', raw(binary, root, request(1, 'server/discover', stateless)), 'ok')
    expect('no version', raw(binary, root, request(1, 'server/discover')), -32602)
    newer = raw(binary, root, request(1, 'tools/list', {VERSION: '2099-01-01', CAPABILITIES: {}}))
    expect('a newer one', newer, -32022)
    if '2026-07-28' not in newer[0]['error']['data']['supported']:
        wrong.append(f'what is spoken is not said: {newer}')
    for asked, got in (('2024-11-05', '2024-11-05'), ('2025-11-25', '2025-11-25'), ('2099-01-01', '2025-11-25')):
        told = raw(binary, root, request(1, 'initialize', protocolVersion=asked, capabilities={}))
        if told[0]['result']['protocolVersion'] != got:
            wrong.append(f'{asked}: {told}')
    batch = raw(binary, root, [ping, {'method': 'x'}, request(2, 'ping')])
    if [r['id'] for r in batch[0]] != [1, 2]:
        wrong.append(f'a batch: {batch}')
    missing = subprocess.run([binary, 'mcp', '--root', '/no/such'], capture_output=True, check=False)
    if missing.returncode != 3 or b'/no/such' not in missing.stderr:
        wrong.append(f'no root: {missing}')
    return wrong


GIGABYTE = 1 << 30


def large(path):
    """A capture of a gigabyte: requests, each answered with 500 full segments, whose payload is in it."""
    header = struct.pack('<IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    segment = bytes(1448)

    def packet(at, back, flags, seq, ack, payload):
        ends = [(0x0A000001, 40000), (0x0A000002, 80)]
        (src, sport), (dst, dport) = ends[::-1] if back else ends
        tcp = (
            struct.pack('>HHIIBBHHH', sport, dport, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 80, flags, 65000, 0, 0)
            + payload
        )
        ip = struct.pack('>BBHHHBBHII', 69, 0, 20 + len(tcp), 0, 0, 64, 6, 0, src, dst)
        return struct.pack('<IIII', 1_700_000_000 + at // 10**6, at % 10**6, len(ip + tcp), len(ip + tcp)) + ip + tcp

    with open(path, 'wb') as f:
        f.write(header)
        f.write(packet(0, 0, 2, 0, 0, b'') + packet(20000, 1, 18, 0, 1, b'') + packet(20100, 0, 16, 1, 1, b''))
        at, up, down, written = 30000, 1, 1, 0
        while written < GIGABYTE:
            out = [packet(at, 0, 24, up, down, bytes(100))]
            up, at = up + 100, at + 40000
            for n in range(500):
                at += 12 if n % 10 else 20000
                out.append(packet(at, 1, 24 if n == 499 else 16, down, up, segment))
                down += len(segment)
                if n % 10 == 9:
                    out.append(packet(at + 1, 0, 16, up, down, b''))
            at += 1000
            written += f.write(b''.join(out))


async def of_a_gigabyte(binary, root):
    """What is wrong with the answers about a capture of a gigabyte."""
    wrong, name = [], 'large.pcap'
    path = os.path.join(root, name)
    try:
        large(path)
        parameters = StdioServerParameters(command=binary, args=['mcp', '--root', root])
        async with Client(stdio_client(parameters, errlog=subprocess.DEVNULL)) as client:
            for tool, arguments in (
                ('explain', {}),
                ('explain', {'connection': '1'}),
                ('exchange', {'connection': '1', 'exchange': 3}),
                ('compare', {}),
            ):
                files = {'before': name, 'after': name} if tool == 'compare' else {'file': name}
                result = await client.call_tool(tool, files | arguments)
                text = ''.join(block.text for block in result.content)
                size = len(json.dumps(text, ensure_ascii=False).encode())
                if result.is_error or not 200 < size <= MOST:
                    wrong.append(f'a gigabyte: {tool} {arguments}: {size} bytes: {text[:300]!r}')
    except OSError as error:
        wrong.append(f'a gigabyte: {error}')
    finally:
        if os.path.exists(path):
            os.remove(path)
    return wrong


async def generations(binary, root):
    return [fault for mode in ('legacy', 'auto', '2026-07-28') for fault in await ask(binary, root, mode)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--gigabyte', action='store_true', help='also a capture of that size (make mcp-gigabyte)')
    args = parser.parse_args()
    binary = os.path.abspath(args.bin)
    with tempfile.TemporaryDirectory() as folder:
        root = folder_of_captures(folder)
        before = sorted(os.listdir(root))
        wrong = asyncio.run(generations(binary, root)) + odd_lines(binary, root)
        if args.gigabyte:
            wrong += asyncio.run(of_a_gigabyte(binary, root))
        if sorted(os.listdir(root)) != before:
            wrong.append(f'the root has changed: {os.listdir(root)}')
    for fault in wrong[:20]:
        print(fault[:600])
    print(f'six tools in three ways to connect: {len(wrong)} faults')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
