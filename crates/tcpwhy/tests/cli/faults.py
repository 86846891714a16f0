"""Plants a fault in a network namespace of its own, runs a command beside it, and ends with its code.

faults.py FAULT COMMAND...
"""

import array
import contextlib
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

KEPT = []
# the command, once it runs
COMMAND = []


def run(*command):
    subprocess.run(command, check=True)


def setting(name, value):
    with open('/proc/sys/net/ipv4/' + name, 'w') as f:
        f.write(str(value))


def listen(backlog=64, address='127.0.0.1', port=0):
    s = socket.create_server((address, port), backlog=backlog)
    KEPT.append(s)
    return s


def connect(to, block=True):
    s = socket.socket()
    s.setblocking(block)
    with contextlib.suppress(BlockingIOError):
        s.connect(to)
    KEPT.append(s)
    return s


def looks(pid):
    """It has begun: what it keeps open last are counters."""
    with contextlib.suppress(OSError):
        return any('/net/snmp' in os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd'))
    return False


def beside(what):
    """Runs it in a thread after the command has begun to look."""

    def later():
        end = time.monotonic() + 20
        while time.monotonic() < end and not (COMMAND and looks(COMMAND[0].pid)):
            time.sleep(0.02)
        time.sleep(0.4)
        what()

    threading.Thread(target=later, daemon=True).start()


def black_hole():
    """An address whose neighbours never answer."""
    run('ip', 'link', 'add', 'hole', 'type', 'veth', 'peer', 'name', 'far')
    run('ip', 'address', 'add', '10.9.0.1/24', 'dev', 'hole')
    for device in ('hole', 'far'):
        run('ip', 'link', 'set', device, 'up')


def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def syn(source, port, to, right=True):
    """A SYN from somebody who will not answer."""
    ends = socket.inet_aton(source) + socket.inet_aton(to[0])

    def tcp(check):
        return struct.pack('!HHLLBBHHH', port, to[1], 1, 0, 0x50, 2, 65535, check, 0)

    check = checksum(ends + struct.pack('!BBH', 0, 6, 20) + tcp(0))
    segment = tcp(check if right else check ^ 0x5555)
    return struct.pack('!BBHHHBBH', 0x45, 0, 40, 0, 0, 64, 6, 0) + ends + segment


def send_raw(packets, to):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for packet in packets:
            raw.sendto(packet, (to, 0))


def nothing():
    """A modest load: an echo over fresh and kept connections, and a transfer."""
    s = listen()

    def serve(c):
        while data := c.recv(65536):
            c.sendall(data[:100])

    def accept():
        while True:
            threading.Thread(target=serve, args=[s.accept()[0]], daemon=True).start()

    def ask():
        while True:
            with socket.create_connection(s.getsockname()) as c:
                for _ in range(10):
                    c.sendall(b'x' * 500)
                    c.recv(100, socket.MSG_WAITALL)
                    time.sleep(0.002)

    def copy():
        sink = listen()
        c = connect(sink.getsockname())
        t = sink.accept()[0]

        def read():
            while t.recv(1 << 20):
                pass

        threading.Thread(target=read, daemon=True).start()
        for _ in range(200):
            c.sendall(b'x' * 200_000)
            time.sleep(0.005)

    for what in (accept, ask, ask, copy):
        threading.Thread(target=what, daemon=True).start()


def small_backlog():
    s = listen(backlog=2, port=8000)
    beside(lambda: [connect(s.getsockname(), block=False) for _ in range(8)])


def behind():
    s = listen(backlog=5, port=8000)
    connect(s.getsockname())


def ports():
    setting('ip_local_port_range', '40000 40019')
    s = listen(port=8000)
    for _ in range(12):
        connect(s.getsockname())
        KEPT.append(s.accept()[0])


def ports_gone():
    """Not one is left: connect() fails."""
    setting('ip_local_port_range', '40000 40019')
    s = listen(port=8000)
    for _ in range(20):
        connect(s.getsockname())
        KEPT.append(s.accept()[0])
    try:
        connect(s.getsockname())
    except OSError:
        return
    sys.exit('a 21st connection over 20 ports')


def time_wait_flood(address='10.9.0.1', ports=30):
    """Connections that this end closed first hold their ports for a minute; those of loopback for a second."""
    setting('ip_local_port_range', '40000 40039')
    run('ip', 'address', 'add', '10.9.0.1/24', 'dev', 'lo')
    s = listen(address=address, port=8000)
    for _ in range(ports):
        c = socket.create_connection(s.getsockname())
        t = s.accept()[0]
        c.close()
        t.close()


def time_wait():
    setting('tcp_max_tw_buckets', 4)
    s = listen(port=8000)

    def close():
        for _ in range(12):
            c = socket.create_connection(s.getsockname())
            t = s.accept()[0]
            c.close()
            t.close()

    beside(close)


def unanswered():
    black_hole()
    connect(('10.9.0.7', 80), block=False)


def flood(cookies):
    setting('tcp_syncookies', cookies)
    setting('tcp_max_syn_backlog', 8)
    black_hole()
    s = listen(backlog=4, address='10.9.0.1', port=8000)
    to = s.getsockname()
    beside(lambda: send_raw([syn(f'10.9.0.{2 + n}', 5000 + n, to) for n in range(60)], to[0]))


class Tun:
    """A network behind a TUN device (linux/if_tun.h), where hosts do what they are told."""

    def __init__(self, address):
        self.file = os.open('/dev/net/tun', os.O_RDWR)
        # TUNSETIFF: IFF_TUN | IFF_NO_PI.
        fcntl.ioctl(self.file, 0x400454CA, struct.pack('16sH22x', b'beyond', 0x1001))
        run('ip', 'address', 'add', address + '/24', 'dev', 'beyond')
        run('ip', 'link', 'set', 'beyond', 'up')

    def send(self, source, port, to, seq, ack=None, data=b''):
        flags = 2 if ack is None else 0x18
        ends = socket.inet_aton(source) + socket.inet_aton(to[0])

        def tcp(check):
            return struct.pack('!HHLLBBHHH', port, to[1], seq, ack or 0, 0x50, flags, 65535, check, 0) + data

        segment = tcp(checksum(ends + struct.pack('!BBH', 0, 6, 20 + len(data)) + tcp(0)))
        head = struct.pack('!BBHHHBBH', 0x45, 0, 20 + len(segment), 0, 0, 64, 6, 0)
        head = head[:10] + struct.pack('!H', checksum(head + ends)) + head[12:]
        os.write(self.file, head + ends + segment)

    def answers(self, seconds):
        """SYN-ACKs that come: the port that they are for, and their numbers."""
        end, found = time.monotonic() + seconds, {}
        while (left := end - time.monotonic()) > 0:
            if select.select([self.file], [], [], left)[0]:
                packet = os.read(self.file, 2048)
                if packet[0] == 0x45 and packet[9] == 6 and packet[33] == 0x12:
                    found[struct.unpack('!H', packet[22:24])[0]] = struct.unpack('!L', packet[24:28])[0]
        return found


def full_behind_cookies():
    """More handshakes at once than the backlog, most of them by SYN cookies.

    Their last ACKs meet a full accept queue, and so does what their clients, who think that they are connected, send again."""
    setting('tcp_syncookies', 1)
    tun = Tun('10.9.0.1')
    to = listen(backlog=2, address='10.9.0.1', port=8000).getsockname()

    def ask():
        ports = range(5000, 5010)
        for port in ports:
            tun.send('10.9.0.2', port, to, 1)
        numbers = tun.answers(0.2)
        for _ in range(3):
            for port, number in numbers.items():
                tun.send('10.9.0.2', port, to, 2, number + 1, b'a request ')
            time.sleep(0.2)

    beside(ask)


def pruned():
    """A buffer that is made smaller than the window that was offered."""
    s = listen(port=8000)
    c = connect(s.getsockname(), block=True)
    t = s.accept()[0]
    KEPT.append(t)
    t.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    c.setblocking(False)

    def fill():
        with contextlib.suppress(BlockingIOError):
            for _ in range(50):
                c.send(b'x' * 2000)

    beside(fill)


def damaged():
    s = listen(port=8000)
    to = s.getsockname()
    beside(lambda: send_raw([syn('127.0.0.1', 5000, to, right=False)], to[0]))


def transfer(c, s, seconds=4, pause=0.0):
    """One that sends as fast as it may, and one that reads."""
    end = time.monotonic() + seconds

    def send():
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                c.sendall(b'x' * 65536)
                time.sleep(pause)

    def read():
        with contextlib.suppress(OSError):
            while s.recv(1 << 20):
                pass

    for what in (send, read):
        threading.Thread(target=what, daemon=True).start()


def pair(**options):
    """A connection over loopback, with options of the client's socket before it connects."""
    s = listen(port=8000)
    c = socket.socket()
    for name, value in options.items():
        c.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
    c.connect(s.getsockname())
    t = s.accept()[0]
    KEPT.extend((c, t))
    return c, t


def buffers_set():
    """Small buffers of connections that do nothing."""
    pair(SO_SNDBUF=8192, SO_RCVBUF=16384)


def clipped():
    """Far more than any host grants."""

    def ask():
        c, _ = pair()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)

    beside(ask)


def group():
    """Sockets of this process get hardly any memory; the group is that of the caller."""
    c, t = pair()
    t.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def fill():
        c.setblocking(False)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                c.send(b'x' * 65536)
            time.sleep(0.01)

    beside(fill)


def ethtool(device, command, value):
    """As ethtool -K does: SIOCETHTOOL with a struct ethtool_value."""
    data = struct.pack('=II', command, value)
    buffer = array.array('B', data)
    request = struct.pack('16sP', device.encode(), buffer.buffer_info()[0])
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8946, request.ljust(40, b'\0'))


def offload():
    """Loopback with packets of 1,500 bytes, each by itself: ETHTOOL_STSO and ETHTOOL_SGSO."""
    run('ip', 'link', 'set', 'lo', 'mtu', '1500')
    for command in (0x1F, 0x24):
        ethtool('lo', command, 0)
    c, t = pair()
    # as long as it is looked at, however late that begins
    transfer(c, t, seconds=60, pause=0.005)


def path_mtu():
    """Two networks, and a router between them whose far side takes less."""
    far = 'far' + str(os.getpid())
    run('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'way')
    run('ip', 'address', 'add', '10.9.0.1/24', 'dev', 'near')
    server = subprocess.Popen(
        ['unshare', '--net', sys.executable, '-c', SINK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    router = subprocess.Popen(['unshare', '--net', 'sleep', '60'])
    KEPT.extend((server, router))
    time.sleep(0.5)
    run('ip', 'link', 'set', 'way', 'netns', str(router.pid))
    inside = ['nsenter', '--net', '--target', str(router.pid)]
    run(*inside, 'ip', 'link', 'add', 'out', 'type', 'veth', 'peer', 'name', far[:15])
    run(*inside, 'ip', 'link', 'set', far[:15], 'netns', str(server.pid))
    run(*inside, 'ip', 'address', 'add', '10.9.0.2/24', 'dev', 'way')
    run(*inside, 'ip', 'address', 'add', '10.9.1.2/24', 'dev', 'out')
    run(*inside, 'ip', 'link', 'set', 'out', 'mtu', '1300')
    run(*inside, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward')
    for device in ('way', 'out'):
        run(*inside, 'ip', 'link', 'set', device, 'up')
    away = ['nsenter', '--net', '--target', str(server.pid)]
    run(*away, 'ip', 'address', 'add', '10.9.1.3/24', 'dev', far[:15])
    run(*away, 'ip', 'link', 'set', far[:15], 'up')
    run(*away, 'ip', 'route', 'add', 'default', 'via', '10.9.1.2')
    run('ip', 'link', 'set', 'near', 'up')
    run('ip', 'route', 'add', 'default', 'via', '10.9.0.2')
    server.stdin.write('go\n')
    server.stdin.flush()
    server.stdout.readline()

    def ask():
        c = connect(('10.9.1.3', 8000))
        with contextlib.suppress(OSError):
            for _ in range(200):
                c.sendall(b'x' * 20000)
                time.sleep(0.01)

    beside(ask)


SINK = """
import socket, sys
sys.stdin.readline()
l = socket.create_server(('10.9.1.3', 8000)); print('ready', flush=True)
s = l.accept()[0]
while s.recv(1 << 20): pass
"""

FAULTS = {
    'buffers-set': buffers_set,
    'clipped': clipped,
    'group': group,
    'offload': offload,
    'path-mtu': path_mtu,
    'nothing': nothing,
    'small-backlog': small_backlog,
    'behind': behind,
    'ports': ports,
    'ports-gone': ports_gone,
    'time-wait-flood': time_wait_flood,
    'time-wait-loopback': lambda: time_wait_flood('127.0.0.1', 40),
    'time-wait': time_wait,
    'unanswered': unanswered,
    'flood-cookies': lambda: flood(1),
    'flood': lambda: flood(0),
    'full-behind-cookies': full_behind_cookies,
    'pruned': pruned,
    'damaged': damaged,
}

if __name__ == '__main__':
    run('ip', 'link', 'set', 'lo', 'up')
    FAULTS[sys.argv[1]]()
    COMMAND.append(subprocess.Popen(sys.argv[2:]))
    code = COMMAND[0].wait()
    for kept in KEPT:
        if isinstance(kept, subprocess.Popen):
            kept.kill()
    sys.stdout.flush()
    os._exit(code)
