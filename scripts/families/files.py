"""What a capture is like: clocks, gaps, beginnings, copies (R17, R18, R21); and every workload on every stack."""

from synth.habits import LINUX, STACKS, WINDOWS
from synth.sim import MS, US

from families.base import CARRIES, PAUSES, Case, lost, path, requests, transfer


def clocks():
    """R17: captures whose clock ticks every 1 or 10 ms; what is shorter than two ticks is not asked."""
    for tick in (1, 10):
        for trip in (3, 40):
            for name, apps, client, server, meant, spec in (
                (
                    'start',
                    transfer([200_000], up=False),
                    LINUX.but(window=400_000),
                    LINUX.but(initial=4),
                    'slow_start',
                    {},
                ),
                ('think', requests(6, (200,), (2_000,), 150 * MS, 200 * MS), LINUX, LINUX, 'clean', {}),
                ('pause', transfer([4_000] * 12, pause=120 * MS), LINUX, LINUX, 'clean', PAUSES),
                (
                    'nagle',
                    requests(8, (4, 300), (40,), gap=100 * MS),
                    LINUX,
                    LINUX.but(pingpong=False, quick=0),
                    'nagle_delayed_ack',
                    {},
                ),
                (
                    'bulk',
                    transfer([500_000]),
                    LINUX.but(initial=40),
                    LINUX.but(window=200_000),
                    None,
                    {'kind': 'any', 'parts': []},
                ),
            ):
                yield Case(
                    f'clock-{tick}ms-{name}-rtt{trip}',
                    'R17',
                    apps,
                    path(trip),
                    client,
                    server,
                    (meant,) if meant else (),
                    {**spec, 'doubt_ms': 2 * tick * (20 if name in ('nagle', 'think', 'pause') else 5)},
                    {'tick': tick * MS},
                )


def below_the_tick():
    """R17: waits that are shorter than the capture's clock: nothing of TCP, no pause and no pace can be read from them."""
    unreadable = (
        'pacing',
        'sender_pause',
        'send_buffer',
        'host_delay',
        'receive_window',
        'cork',
        'delayed_ack',
        'nagle',
        'nagle_delayed_ack',
        'queueing',
        'retransmission_timeout',
        'fast_recovery',
    )
    for tick in (1, 10):
        for trip in (0.1, 0.4):
            for name, apps in (
                ('bulk', transfer([3_000_000], up=False)),
                ('up', transfer([3_000_000])),
                ('requests', requests(60, (200,), (4_000,), 300 * US, 1 * MS)),
            ):
                yield Case(
                    f'tick-{tick}ms-{name}-rtt{trip}',
                    'R17',
                    apps,
                    path(trip, 400e6),
                    LINUX.but(window=262_144),
                    LINUX.but(window=262_144, initial=20),
                    (),
                    {'kind': 'any', 'parts': [], 'forbidden': unreadable},
                    {'tick': tick * MS},
                )


def missing():
    """R18: the capture lost packets; nothing may be blamed on the network for it."""
    for trip in (1, 20, 80):
        for share in (0.01, 0.05):
            lossless = (
                'fast_recovery',
                'retransmission_timeout',
                'tail_loss_probe',
                'spurious_recovery',
                'path_mtu',
                'syn_retransmit',
            )
            yield Case(
                f'missing-down-{share}-rtt{trip}',
                'R18',
                transfer([600_000], up=False),
                path(trip),
                LINUX.but(window=300_000),
                LINUX,
                (),
                {'kind': 'any', 'parts': [], 'forbidden': lossless},
                {'lose': share},
            )
            yield Case(
                f'missing-requests-{share}-rtt{trip}',
                'R18',
                requests(40, (300,), (9_000,), 8 * MS, 30 * MS),
                path(trip),
                LINUX,
                LINUX,
                (),
                {'kind': 'any', 'parts': [], 'forbidden': lossless},
                {'lose': share},
            )


def backwards():
    """R21: what the first packets do not say, later ones do: the capture begins in the middle; NODELAY shows late."""
    for trip in (1, 20, 70):
        yield Case(
            f'middle-window-rtt{trip}',
            'R21',
            transfer([400_000]),
            path(trip),
            LINUX,
            LINUX.but(window=16_000, scale=0),
            ('receive_window',),
            {
                'parts': [],
                'weak': ['congestion_window', 'send_buffer'],
                'also': ('congestion_window', 'send_buffer', 'slow_start'),
            },
            {'skip': 60},
        )
        yield Case(
            f'middle-nagle-rtt{trip}',
            'R21',
            requests(12, (4, 300), (40,), gap=60 * MS),
            path(trip),
            LINUX,
            LINUX.but(pingpong=False, quick=0),
            ('nagle_delayed_ack', 'nagle'),
            {'parts': []},
            {'skip': 12},
        )
        yield Case(
            f'middle-think-rtt{trip}',
            'R21',
            requests(8, (400,), (2_500,), 90 * MS, 50 * MS),
            path(trip),
            LINUX,
            LINUX,
            ('clean',),
            {'parts': []},
            {'skip': 6},
        )

        def client(trip=trip):
            # each second write comes when the ACK of the first happens to be back; later two are in flight at once
            for n in range(14):
                yield 'write', 50
                yield 'sleep', int(trip * MS) + 45 * MS if n < 10 else 1 * MS
                yield 'write', 70
                yield 'read', 100
                yield 'sleep', 40 * MS
            yield ('close',)
            yield ('closed',)

        def server():
            for _ in range(14):
                yield 'read', 120
                yield 'write', 100
            yield ('closed',)
            yield ('close',)

        yield Case(
            f'nodelay-late-rtt{trip}',
            'R21',
            (client, server),
            path(trip),
            LINUX.but(nagle='off'),
            LINUX.but(pingpong=False, quick=0),
            ('clean',),
            PAUSES,
        )


def strange():
    """Files that mislead: each packet twice, reordering, thinned ACKs, a FIN that overtakes, a pace."""
    for trip, delay in ((2, 7), (20, 5), (60, 12)):
        for name, apps, client, server, meant in (
            ('download', transfer([200_000], up=False), LINUX.but(window=300_000), LINUX, 'slow_start'),
            ('requests', requests(10, (300,), (4_000,), 12 * MS), LINUX, LINUX, 'clean'),
        ):
            yield Case(
                f'copies-{name}-rtt{trip}-{delay}',
                'odd 1',
                apps,
                path(trip),
                client,
                server,
                (meant,),
                {
                    'forbidden': (
                        'fast_recovery',
                        'retransmission_timeout',
                        'tail_loss_probe',
                        'syn_retransmit',
                        'path_mtu',
                    ),
                    'parts': [],
                    'also': ('slow_start',),
                },
                {'copies': delay * MS},
            )
    for trip in (15, 50):
        for late in (1, 3):
            aside = {'overtake': lambda p, n, d=late: d * MS if p.payload and n in (25, 47, 80) else 0}
            yield Case(
                f'reorder-rtt{trip}-{late}',
                'odd 9',
                transfer([150_000], up=False),
                path(trip, 40e6, down=aside),
                LINUX.but(window=300_000),
                LINUX.but(fast=False, probe=False),
                ('slow_start', 'clean'),
                {
                    'forbidden': ('fast_recovery', 'retransmission_timeout', 'tail_loss_probe', 'path_mtu'),
                    'parts': [],
                    'kind': 'any',
                },
            )
    for trip, hold in ((10, 4), (40, 10), (100, 20)):
        yield Case(
            f'thin-start-rtt{trip}',
            'R3 R8',
            transfer([200_000], up=False),
            path(trip, up={'thin': hold * MS}),
            LINUX.but(window=400_000),
            LINUX,
            ('slow_start',),
            {'doubt_ms': 5 * hold},
        )
        yield Case(
            f'thin-link-rtt{trip}',
            'R6',
            transfer([500_000], up=False),
            path(trip, 8e6, up={'thin': hold * MS}),
            LINUX.but(window=400_000),
            LINUX.but(initial=60),
            ('clean',),
            {**CARRIES, 'doubt_ms': 10 * hold},
        )
        yield Case(
            f'fin-overtakes-rtt{trip}',
            'odd 5',
            transfer([1_448 * 5 + 200], up=False),
            path(trip, down={'drop': lost(5)}),
            LINUX,
            WINDOWS.but(initial=8, rto_min=1_200 * MS),
            ('retransmission_timeout',),
        )
    for trip, rate in ((20, 500_000), (50, 250_000), (5, 1_000_000)):
        yield Case(
            f'paced-rtt{trip}',
            'R2',
            transfer([400_000], up=False),
            path(trip),
            LINUX.but(window=400_000),
            LINUX.but(pace=rate, initial=40),
            ('pacing',),
            {'weak': ['bandwidth', 'slow_start', 'congestion_window']},
            taps=(1,),  # the receiver cannot tell a pace from a link
        )


WORK = (
    ('start', lambda: transfer([90_000], up=False), {'window': 200_000}, {}, 60),
    ('upload', lambda: transfer([90_000], answer=50), {}, {'window': 200_000}, 35),
    ('window', lambda: transfer([250_000], up=False), {'window': 8_760, 'scale': 0}, {}, 25),
    ('nagle', lambda: requests(8, (12, 400), (60,), 3 * MS, 80 * MS), {}, {}, 15),
    ('nagle-answer', lambda: requests(8, (100,), (8, 300), 3 * MS, 80 * MS), {}, {}, 15),
    ('clean', lambda: requests(10, (250,), (1_000,), 2 * MS, 60 * MS), {'nagle': 'off'}, {'nagle': 'off'}, 25),
    ('think', lambda: requests(5, (250,), (1_000,), 350 * MS, 700 * MS), {}, {}, 30),
    ('pause', lambda: transfer([1_200] * 15, pause=180 * MS), {'nagle': 'off'}, {}, 20),
    ('link', lambda: transfer([120_000], up=False), {'window': 100_000}, {'initial': 20}, 20),
    ('lost', lambda: transfer([60_000], up=False), {}, {'initial': 10}, 30),
)


def stacks():
    """Every workload on every stack: both ends have its habits, or one of them."""
    for name, stack in STACKS.items():
        for work, apps, client, server, trip in WORK:
            near = stack if work in ('window', 'nagle', 'nagle-answer', 'pause', 'clean') else LINUX
            far = LINUX if work in ('window', 'nagle-answer') else stack
            if work == 'nagle':
                far = LINUX.but(pingpong=False, quick=0)
            links = (
                path(trip, 2e6)
                if work == 'link'
                else path(trip, down={'drop': lost(20)})
                if work == 'lost'
                else path(trip)
            )
            spec = (
                {'kind': 'dominant', 'dominant': ['sender_pause'], 'weak': [], 'also': ('delayed_ack',)}
                if work == 'pause'
                else {}
            )
            if spec and not stack.pingpong and stack.every == 2 and stack.delay > 300 * MS:
                continue  # its ACKs come so late that the sender's timer runs out
            yield Case(
                f'stack-{name}-{work}', 'R2 R3 R16', apps(), links, near.but(**client), far.but(**server), (), spec
            )


def offloads():
    """Segments that interfaces cut and join: one packet is many at the sender's tap, one ACK for many at the receiver's."""
    for trip in (1, 30):
        for work, apps, client, server, _ in WORK:
            if work in ('clean', 'think', 'pause'):
                continue
            links = (
                path(trip, 50e6)
                if work == 'link'
                else path(trip, down={'drop': lost(20)})
                if work == 'lost'
                else path(trip)
            )
            near = LINUX.but(**client)
            far = LINUX.but(pingpong=False, quick=0) if work == 'nagle' else LINUX.but(**server)
            yield Case(f'offload-{work}-rtt{trip}', 'R6', apps(), links, near, far, wire={'offload': 60 * US})


FAMILIES = (offloads, clocks, below_the_tick, missing, backwards, strange, stacks)
