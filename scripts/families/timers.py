"""Timers, rates, idle times and tails: rules R5 to R8."""

from synth.habits import BSD, DEVICE, LINUX, LINUX_OLD, MACOS, SOLARIS, WINDOWS, WINDOWS_10
from synth.sim import MS, SECOND, US

from families.base import CARRIES, PAUSES, Case, lost, path, requests, transfer


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


FAMILIES = (oldest_byte, rates, after_idle, tails)
