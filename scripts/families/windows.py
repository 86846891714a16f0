"""Windows, buffers, timers and rates: rules R1 to R8."""

from synth.habits import BSD, DEVICE, LINUX, LINUX_OLD, MACOS, SOLARIS, WINDOWS, WINDOWS_10
from synth.sim import MS, SECOND, US

from families.base import CARRIES, PAUSES, WORKS, Case, lost, path, requests, stops, transfer

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


def oldest_byte():
    """R5: the oldest unacknowledged byte owns the silence; silences with nothing unacknowledged beside them."""
    for n, stack in enumerate(
        (DEVICE, BSD.but(fast=False), WINDOWS.but(fast=False), LINUX.but(fast=False, probe=False, rto_min=3 * SECOND))
    ):
        trip = (2, 20, 60, 20)[n]
        slow = stack.but(rto_min=(3 * SECOND, 3 * SECOND, 5 * SECOND, 8 * SECOND)[n], initial=6)
        yield Case(
            f'oldest-late-{stack.name}-rtt{trip}',
            'R5',
            transfer([4_000, 600, 600, 4_000], pause=900 * MS),
            path(trip, up={'drop': lost(1)}),
            slow,
            LINUX,
            ('retransmission_timeout',),
        )
        yield Case(
            f'oldest-down-{stack.name}-rtt{trip}',
            'R5',
            transfer([4_000, 600, 600, 4_000], up=False, pause=900 * MS),
            path(trip, down={'drop': lost(1)}),
            LINUX,
            slow,
            ('retransmission_timeout',),
        )
        # the same silence, all acknowledged
        yield Case(
            f'oldest-not-{stack.name}-rtt{trip}',
            'R5',
            transfer([4_000, 600, 600, 4_000], up=False, pause=900 * MS),
            path(trip),
            LINUX,
            slow,
            ('clean',),
            PAUSES,
        )
    for n, (trip, wait, rto) in enumerate(((3, 20, 24), (25, 6, 9), (80, 12, 13))):
        timer = WINDOWS.but(rto_min=rto * SECOND, fast=False, nagle='off')
        yield Case(
            f'oldest-new-data-rtt{trip}',
            'R5',
            transfer([2_000, 300, 300], pause=wait * SECOND),
            path(trip, up={'drop': lost(1)}),
            timer,
            (LINUX, MACOS, BSD)[n],
            ('retransmission_timeout',),
            taps=(0,),
        )
        yield Case(
            f'oldest-new-data-down-rtt{trip}',
            'R5',
            transfer([2_000, 300, 300], up=False, pause=wait * SECOND),
            path(trip, down={'drop': lost(1)}),
            (LINUX, MACOS, BSD)[n],
            timer,
            ('retransmission_timeout',),
            taps=(1,),
        )
        # the same writes, nothing lost: gaps between runs
        yield Case(
            f'oldest-new-data-not-rtt{trip}',
            'R5',
            transfer([2_000, 300, 300], up=False, pause=800 * MS),
            path(trip),
            (LINUX, MACOS, BSD)[n],
            timer,
            ('clean',),
            PAUSES,
        )
    for trip, tries in ((5, 4), (40, 5), (100, 3)):
        gone = {'drop': lambda p, n: bool(p.payload) and n >= 6}
        yield Case(
            f'oldest-give-up-rtt{trip}',
            'R5',
            requests(1, (200,), (20_000,)),
            path(trip, down=gone),
            LINUX,
            LINUX.but(give_up=tries),
            ('retransmission_timeout',),
            taps=(1,),
        )
    for trip, numbers in ((10, (0,)), (30, (3,)), (60, (9,)), (20, (9, 10)), (150, (2,))):
        for client, server in ((LINUX, LINUX), (MACOS, WINDOWS), (LINUX_OLD, BSD)):
            yield Case(
                f'lost-{"-".join(map(str, numbers))}-{server.name}-rtt{trip}',
                'R5 R16',
                requests(2, (200,), (14_000,), gap=300 * MS),
                path(trip, down={'drop': lost(*numbers)}),
                client,
                server,
                ('retransmission_timeout', 'tail_loss_probe', 'fast_recovery', 'slow_start', 'congestion_window'),
            )


def rates():
    """R6, R7: what the link takes and what a window takes; offloads; a first flight lost whole; Nagle behind the link."""
    for trip in (0.2, 1, 5):
        yield Case(
            f'rate-none-2k-rtt{trip}',
            'R6',
            transfer([150_000]),
            path(trip),
            LINUX.but(nagle='off'),
            LINUX.but(window=2_896, scale=0),
            ('receive_window', 'delayed_ack'),
            {'dominant': ['receive_window', 'delayed_ack'], 'weak': ['silly_window']},
        )
        yield Case(
            f'rate-none-2k-device-rtt{trip}',
            'R6',
            transfer([150_000], up=False),
            path(trip),
            DEVICE.but(every=1),
            LINUX,
            ('receive_window', 'delayed_ack'),
            {'dominant': ['receive_window', 'delayed_ack'], 'weak': ['silly_window']},
        )
    patient = LINUX.but(rto_min=3 * SECOND, probe=False)  # else the queue makes the timer run out
    for rate, trip in ((1e6, 2), (1e6, 30), (256e3, 40), (64e3, 100)):
        yield Case(
            f'rate-requests-{rate / 1e3:.0f}k-rtt{trip}',
            'R6',
            requests(10, (400,), (1_200,), 5 * MS),
            path(trip, rate),
            LINUX,
            LINUX,
            ('clean',),
            {'parts': [], 'inherent': ('server_think',)},
        )
        yield Case(
            f'rate-answers-{rate / 1e3:.0f}k-rtt{trip}',
            'R6',
            requests(3, (400,), (9_000,), 5 * MS),
            path(trip, rate),
            patient,
            patient,
            ('clean',),
            {'also': ('slow_start',)},
        )
        yield Case(
            f'rate-upload-{rate / 1e3:.0f}k-rtt{trip}',
            'R6',
            transfer([60_000]),
            path(trip, rate),
            patient.but(initial=20),
            LINUX.but(window=100_000),
            ('clean',),
            CARRIES,
        )
    for rate, trip in ((100e6, 0.5), (100e6, 4), (20e6, 10)):
        for offload in (0, 100 * US):
            name = 'tso' if offload else 'wire'
            yield Case(
                f'rate-{name}-{rate / 1e6:.0f}m-rtt{trip}',
                'R6',
                transfer([1_500_000], up=False),
                path(trip, rate),
                LINUX.but(window=400_000, every=16 if offload else 2),
                LINUX.but(initial=40),
                ('clean',),
                CARRIES,
                wire={'offload': offload},
            )
        yield Case(
            f'rate-window-{rate / 1e6:.0f}m-rtt{trip}',
            'R6',
            transfer([400_000]),
            path(trip * 5, rate),
            LINUX,
            LINUX.but(window=12_000),
            ('receive_window',),
        )
    for trip, stack in ((3, LINUX), (25, WINDOWS), (25, LINUX_OLD), (80, LINUX)):
        yield Case(
            f'rate-flight-lost-{stack.name}-rtt{trip}',
            'R6',
            transfer([60_000], up=False),
            path(trip, down={'drop': lost(*range(min(10, stack.initial)))}),
            LINUX,
            stack,
            ('retransmission_timeout', 'tail_loss_probe'),
        )
    for trip, client in ((0.5, LINUX), (2, LINUX.but(nagle='classic')), (5, WINDOWS), (0.5, MACOS)):
        yield Case(
            f'nagle-behind-link-{client.name}-{client.nagle}-rtt{trip}',
            'R7',
            transfer([4, 100_000], answer=20),
            path(trip, 20e6),
            client.but(initial=80),
            LINUX.but(window=200_000),
            ('clean',),
            {**CARRIES, 'also': ('nagle', 'slow_start')},
        )


def after_idle():
    """R8: stacks that restart after idle, and those that do not."""
    for n, (stack, gap) in enumerate(
        (
            (LINUX, 2_000),
            (LINUX, 600),
            (MACOS, 3_000),
            (SOLARIS, 2_000),
            (BSD.but(window=65_000), 4_000),
            (LINUX, 6_000),
        )
    ):
        for trip in (30, 120):
            big = LINUX.but(window=500_000)
            yield Case(
                f'idle-restart-{n}-{stack.name}-rtt{trip}',
                'R8',
                requests(5, (300,), (120_000,), gap=gap * MS),
                path(trip),
                big,
                stack.but(nagle='off'),
                ('idle_restart', 'slow_start'),
            )
            yield Case(
                f'idle-kept-{n}-{stack.name}-rtt{trip}',
                'R8',
                requests(6, (300,), (60_000,), gap=gap * MS),
                path(trip),
                big,
                stack.but(idle='keep', initial=44, nagle='off', name=stack.name + '-keeps'),
                ('clean',),
            )
    for trip in (20, 60):
        yield Case(
            f'idle-kept-nagle-rtt{trip}',
            'R8',
            requests(5, (40, 30_300), (100,), gap=6 * SECOND),
            path(trip),
            LINUX.but(idle='keep', initial=30),
            LINUX.but(window=200_000),
            ('clean', 'nagle', 'nagle_delayed_ack'),
        )
        yield Case(
            f'idle-short-rtt{trip}',
            'R8',
            requests(5, (40, 30_300), (100,), gap=150 * MS),
            path(trip),
            LINUX.but(nagle='off', initial=30),
            LINUX.but(window=200_000),
            ('clean',),
        )


def tails():
    """Classic Nagle (RFC 896): whole segments and a tail, which waits for the ACK of all of it; Minshall's lets it go."""
    for trip, stack in (
        (2, WINDOWS),
        (20, WINDOWS_10),
        (60, SOLARIS),
        (20, BSD.but(initial=20, window=60_000)),
        (90, MACOS),
    ):
        for nagle in ('classic', 'minshall', 'off'):
            yield Case(
                f'tail-{stack.name}-{nagle}-rtt{trip}',
                'R7',
                requests(10, (5 * 1_448 + 300,), (100,), gap=100 * MS),
                path(trip),
                stack.but(nagle=nagle, initial=20),
                LINUX.but(push_acks=False),
                ('nagle', 'nagle_delayed_ack') if nagle == 'classic' else ('clean',),
            )


FAMILIES = (tails, shut_window, old_echo, late_handshake, nothing_in_flight, oldest_byte, rates, after_idle)
