"""Windows, buffers and echoes: rules R1 to R4."""

from synth.habits import BSD, DEVICE, LINUX, LINUX_OLD, MACOS, SOLARIS, WINDOWS, WINDOWS_10
from synth.sim import MS, SECOND, US

from families.base import CARRIES, PAUSES, WORKS, Case, path, requests, stops, transfer

PAIRS = (
    (LINUX, LINUX),
    (LINUX, WINDOWS),
    (WINDOWS, LINUX),
    (MACOS, BSD),
    (BSD, LINUX),
    (LINUX_OLD, SOLARIS),
    (WINDOWS_10, MACOS),
)


def shut_window():
    """R1: the reader stops; and what looks like it: a sender that pauses, a server that works, a window that is only small."""
    for n, (client, server) in enumerate(PAIRS):
        for trip, wait in ((1, 900 * MS), (20, 5 * SECOND), (80, 20 * SECOND)):
            total = 150_000 + 40_000 * n
            yield Case(
                f'shut-upload-{client.name}-{server.name}-rtt{trip}',
                'R1',
                transfer([total], reader=stops(30_000, wait, total)),
                path(trip),
                client,
                server.but(window=min(server.window, 32_000)),
                ('slow_reader',),
            )
    for n, trip in enumerate((2, 30, 120)):
        client = (LINUX, WINDOWS, BSD)[n].but(window=24_000)
        yield Case(
            f'shut-reset-rtt{trip}',
            'R1',
            (_stop_update_reset(3 * SECOND), _push(400_000)),
            path(trip),
            client,
            LINUX,
            ('slow_reader',),
        )
        yield Case(
            f'shut-command-rtt{trip}',
            'R1',
            (_stop_and_speak(4 * SECOND), _push(300_000, 30)),
            path(trip),
            client,
            LINUX,
            ('slow_reader',),
        )
        yield Case(
            f'shut-silly-rtt{trip}',
            'R1',
            transfer([120_000], up=False, reader=_sips(600, 10, 500 * MS, 120_000)),
            path(trip),
            LINUX.but(window=12_000, silly=True, update='each', scale=0),
            LINUX,
            ('slow_reader', 'silly_window'),
            {'dominant': ['slow_reader', 'silly_window'], 'weak': ['receive_window']},
        )
        yield Case(
            f'shut-no-update-rtt{trip}',
            'R1',
            transfer([60_000], reader=stops(8_000, 6 * SECOND, 60_000)),
            path(trip),
            (LINUX, WINDOWS, BSD)[n],
            DEVICE.but(window=5_840, update='never'),
            ('slow_reader', 'receive_window'),
            {'dominant': ['slow_reader'], 'weak': ['receive_window', 'silly_window']},
        )
        # look-alikes
        yield Case(
            f'shut-not-pause-rtt{trip}',
            'R1',
            transfer([20_000, 20_000, 20_000, 20_000], pause=800 * MS),
            path(trip),
            LINUX.but(idle='keep'),
            LINUX.but(window=40_000),
            ('clean',),
            PAUSES,
        )
        yield Case(
            f'shut-not-work-rtt{trip}',
            'R1',
            requests(3, (300,), (60_000,), 3 * SECOND),
            path(trip),
            LINUX.but(window=64_000),
            LINUX.but(initial=44),
            ('clean', 'receive_window'),
            WORKS,
        )
        yield Case(
            f'shut-not-small-rtt{trip}',
            'R1',
            transfer([200_000]),
            path(trip),
            LINUX,
            LINUX.but(window=8_192, scale=0),
            ('receive_window',),
        )


def _push(total, command=0):
    def server():
        yield 'write', total
        if command:
            yield 'read', command
        yield ('close',)

    return server


def _stop_update_reset(wait):
    def client():
        yield 'read', 48_000
        yield ('stop',)
        yield 'sleep', wait
        yield ('go',)
        yield 'sleep', 300 * US
        yield ('reset',)

    return client


def _stop_and_speak(wait):
    def client():
        yield 'read', 40_000
        yield ('stop',)
        yield 'sleep', wait // 2
        yield 'write', 30
        yield 'sleep', wait // 2
        yield ('go',)
        yield 'read', 260_000
        yield ('closed',)
        yield ('close',)

    return client


def _sips(size, count, wait, total):
    """A reader that reads a little each time, so that the window stays below a segment."""

    def reader():
        yield 'read', 20_000
        yield ('stop',)
        for _ in range(count):
            yield 'sleep', wait
            yield 'take', size
        yield ('go',)
        yield 'read', total - 20_000

    return reader


def old_echo():
    """R2: stacks that do not echo the stamps of pure ACKs (RFC 1323), limited by this and that; and uploads without a limit."""
    for trip in (2, 20, 90):
        echo = LINUX.but(name='echo1323', ts_echo=1323, ts_tick=10 * MS)
        for name, client, server, apps, meant in (
            ('window', echo, LINUX.but(window=16_384, scale=0), transfer([300_000]), 'receive_window'),
            ('start', echo.but(initial=2), LINUX.but(window=400_000), transfer([150_000]), 'slow_start'),
            ('buffer', echo.but(send_buffer=16_384), LINUX.but(window=400_000), transfer([8_192] * 40), 'send_buffer'),
            ('nagle', echo, LINUX.but(pingpong=False, quick=0), requests(12, (4, 300), (40,)), 'nagle_delayed_ack'),
            ('bsd', BSD, LINUX, transfer([150_000]), None),
        ):
            yield Case(f'echo-{name}-rtt{trip}', 'R2', apps, path(trip), client, server, (meant,) if meant else ())
        # look-alikes: the same stack, nothing in TCP's way
        yield Case(
            f'echo-not-pause-rtt{trip}',
            'R2',
            transfer([8_000] * 20, pause=150 * MS),
            path(trip),
            echo,
            LINUX,
            ('clean',),
            PAUSES,
        )
        yield Case(
            f'echo-not-link-rtt{trip}',
            'R2',
            transfer([600_000]),
            path(trip, 5e6),
            echo.but(initial=40),
            LINUX.but(window=400_000),
            ('clean',),
            CARRIES,
        )


def late_handshake():
    """R3, R19: a handshake that was slower than the path; the reaction of the sender comes from the data."""
    for trip, late in ((1.5, 50), (1.5, 200), (8, 50), (30, 150)):
        yield Case(
            f'late-path-window-rtt{trip}-{late}',
            'R3',
            transfer([200_000]),
            path(trip, up={'extra': _first_ack(late * MS)}),
            LINUX.but(probe=False, rto_min=SECOND),
            LINUX.but(window=4_096, scale=0),
            ('receive_window',),
            {'doubt_ms': late},
        )
        yield Case(
            f'late-path-not-pause-rtt{trip}-{late}',
            'R3',
            transfer([6_000] * 40, pause=int(trip * 2) * MS + 20 * MS),
            path(trip, up={'extra': _first_ack(late * MS)}),
            LINUX.but(idle='keep'),
            LINUX,
            ('clean',),
            PAUSES,
        )
        slow = LINUX.but(third_ack=late * MS)
        yield Case(
            f'late-ack-window-rtt{trip}-{late}',
            'R3',
            transfer([200_000]),
            path(trip),
            slow,
            LINUX.but(window=4_096, scale=0),
            ('receive_window',),
        )
        yield Case(
            f'late-ack-start-rtt{trip}-{late}',
            'R3',
            transfer([120_000]),
            path(trip),
            slow.but(initial=2),
            LINUX.but(window=300_000),
            ('slow_start',),
        )
        yield Case(
            f'late-ack-not-pause-rtt{trip}-{late}',
            'R3',
            transfer([2_000] * 30, pause=int(trip * 3) * MS + 10 * MS),
            path(trip),
            slow,
            LINUX,
            ('clean',),
            PAUSES,
        )
        first = Case('', '', requests(2, (100,), (500,)), path(trip), LINUX, LINUX)
        yield Case(
            f'late-ack-shared-rtt{trip}-{late}',
            'R19',
            requests(8, (4, 300), (40,), gap=30 * MS),
            path(trip),
            slow,
            LINUX.but(pingpong=False, quick=0),
            ('nagle_delayed_ack', 'nagle'),
            earlier=(first,),
        )


def _first_ack(late):
    """A delay of the path that only the handshake's last ACK meets, and what queues behind it."""
    return lambda p, now: late if p.pure_ack() and p.seq == 1 and p.ack == 1 else 0


def nothing_in_flight():
    """R4: waits with nothing in flight are the application's; a real send buffer and a real window beside them."""
    for trip, size, pause in (
        (20, 20_000, 25),
        (5, 20_000, 12),
        (0.3, 1_448, 2.5),
        (0.3, 14_480, 4),
        (40, 10_000, 60),
        (80, 14_000, 100),
    ):
        yield Case(
            f'pause-writes-rtt{trip}-{size}',
            'R4',
            transfer([size] * 40, pause=int(pause * MS)),
            path(trip),
            LINUX.but(initial=20),
            LINUX.but(window=262_144),
            ('clean',),
            PAUSES,
        )
        yield Case(
            f'pause-down-rtt{trip}-{size}',
            'R4',
            transfer([size] * 40, up=False, pause=int(pause * MS)),
            path(trip),
            LINUX.but(window=262_144),
            LINUX.but(initial=20),
            ('clean',),
            PAUSES,
        )
    for trip, size in ((5, 4_096), (20, 16_384), (60, 16_384), (20, 65_536)):
        buffer = LINUX.but(send_buffer=2 * size, initial=120, nagle='off')
        yield Case(
            f'buffer-rtt{trip}-{size}',
            'R4',
            transfer([size] * 30),
            path(trip),
            buffer,
            LINUX.but(window=500_000),
            ('send_buffer',),
            {'weak': ['congestion_window'], 'also': ('receive_window', 'slow_start', 'congestion_window')},
        )
        yield Case(
            f'buffer-win-rtt{trip}-{size}',
            'R4',
            transfer([size] * 30),
            path(trip),
            WINDOWS.but(send_buffer=size, wake=0.01, initial=120, nagle='off'),
            LINUX.but(window=500_000),
            ('send_buffer',),
            {'also': ('receive_window', 'slow_start', 'congestion_window')},
        )
    for base, trip in ((500, 600), (300, 400)):
        # the handshake met a queue, the data do not
        def extra(p, now):
            return 100 * MS if now < 700 * MS else 0

        yield Case(
            f'window-64k-rtt{trip}',
            'R4',
            transfer([700_000]),
            path(base, up={'extra': extra}),
            LINUX.but(initial=50),
            LINUX.but(window=65_535, scale=0),
            ('receive_window',),
        )
        yield Case(
            f'window-64k-down-rtt{trip}',
            'R4',
            transfer([700_000], up=False),
            path(base, up={'extra': extra}),
            LINUX.but(window=65_535, scale=0),
            LINUX.but(initial=50),
            ('receive_window',),
        )


FAMILIES = (shut_window, old_echo, late_handshake, nothing_in_flight)
