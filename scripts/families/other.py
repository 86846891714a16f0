"""Handshakes, think, middleboxes and timers: rules R9 to R16 and R20."""

from synth.habits import LINUX, MACOS, STACKS, WINDOWS, WINDOWS_10
from synth.sim import MS, SECOND

from families.base import CARRIES, PAUSES, WORKS, Case, lost, path, requests, transfer

RECORDS = {'hello': b'\x16\x03\x01', 'hello2': b'\x16\x03\x03', 'change': b'\x14\x03\x03', 'data': b'\x17\x03\x03'}


def record(kind, size):
    """The first bytes of a TLS record whose body makes it `size` bytes."""
    return (
        RECORDS[kind]
        + (size - 5).to_bytes(2, 'big')
        + (b'\x01' if kind == 'hello' else b'\x02' if kind == 'hello2' else b'')
    )


def tls():
    """R9: the last writes of a TLS handshake, one of them held by Nagle or none."""
    for trip in (2, 25, 90):
        for held in (True, False):
            client_says = ((517, 'hello'), (80, 'hello2'), (300, 'data'))
            server_says = ((3_000, 'hello2'), (51, 'change'), (210, 'hello2'), (900, 'data'))

            def client():
                yield 'write', 517
                yield 'read', 3_000
                yield 'write', 80
                yield 'read', 261
                yield 'write', 300
                yield 'read', 900
                yield ('close',)
                yield ('closed',)

            def server(together=not held):
                yield 'read', 517
                yield 'write', 3_000
                yield 'read', 80
                yield 'write', 261 if together else 51
                if not together:
                    yield 'write', 210
                yield 'read', 300
                yield 'sleep', 3 * MS
                yield 'write', 900
                yield ('closed',)
                yield ('close',)

            contents = []
            for says in (client_says, server_says):
                at, own = 1, []
                for size, kind in says:
                    own.append((at, record(kind, size)))
                    at += size
                contents.append(tuple(own))
            yield Case(
                f'tls-{"held" if held else "joined"}-rtt{trip}',
                'R9',
                (client, server),
                path(trip),
                LINUX.but(pingpong=False, quick=0),
                LINUX,
                ('nagle_delayed_ack', 'nagle') if held else ('clean',),
                {'inherent': ('tls_handshake',)},
                contents=tuple(contents),
            )


def tls_request():
    """R9: the request follows the client's last TLS write at once (TLS 1.3), and Nagle holds it, or TCP_NODELAY lets it go."""
    for trip in (1, 20, 70):
        for nagle in ('minshall', 'classic', 'off'):

            def client():
                yield 'write', 517
                yield 'read', 2_500
                yield 'write', 80
                yield 'write', 300
                yield 'read', 900
                yield ('close',)
                yield ('closed',)

            def server():
                yield 'read', 517
                yield 'write', 2_500
                yield 'read', 380
                yield 'sleep', 2 * MS
                yield 'write', 900
                yield ('closed',)
                yield ('close',)

            contents = (
                ((1, record('hello', 517)), (518, record('data', 80)), (598, record('data', 300))),
                ((1, record('hello2', 127)), (128, record('data', 2_373)), (2_501, record('data', 900))),
            )
            yield Case(
                f'tls-request-{nagle}-rtt{trip}',
                'R9',
                (client, server),
                path(trip),
                LINUX.but(nagle=nagle),
                LINUX.but(pingpong=False, quick=0),
                ('clean',) if nagle == 'off' else ('nagle_delayed_ack', 'nagle'),
                {'inherent': ('tls_handshake',)},
                contents=contents,
            )


def held_first():
    """R10: the held segment is the first of what follows; the other side pushes meanwhile."""
    for trip, stack in ((0.5, LINUX), (20, LINUX), (60, MACOS), (20, WINDOWS)):
        for held in (True, False):

            def client(held=held):
                for _ in range(12):
                    yield 'write', 4
                    yield 'write', 60
                    yield 'sleep', 400 * MS

                yield ('close',)

            def server():
                for _ in range(30):
                    yield 'write', 700
                    yield 'sleep', 170 * MS
                yield ('close',)

            yield Case(
                f'held-first-{stack.name}-{"nagle" if held else "nodelay"}-rtt{trip}',
                'R10',
                (client, server),
                path(trip),
                stack.but(nagle=stack.nagle if held else 'off', initial=10),
                LINUX.but(push_acks=False, pingpong=False, quick=0, nagle='minshall' if held else 'off'),
                ('nagle_delayed_ack', 'nagle') if held else (),
                (
                    {'dominant': ['nagle_delayed_ack', 'nagle'], 'weak': ['delayed_ack'], 'parts': []}
                    if held
                    else {
                        'kind': 'any',
                        'parts': [],
                        'forbidden': ('nagle', 'nagle_delayed_ack', 'cork', 'send_buffer', 'receive_window'),
                    }
                ),
            )


def refused():
    """R11: a reset after each SYN, however often it is tried; and SYNs that nothing answers."""
    for trip, tries, gap in (
        (0.5, 2, 500),
        (30, 2, 500),
        (5, 0, 500),
        (80, 4, 1_000),
        (150, 2, 500),
        (2, 3, 500),
        (20, 1, 500),
    ):

        def wait():
            return iter(())

        yield Case(
            f'refused-{tries}-rtt{trip}',
            'R11',
            (wait, wait),
            path(trip),
            WINDOWS.but(reset_tries=tries, reset_gap=gap * MS),
            LINUX.but(refuses=True),
            (),
            {'refused': True},
        )
    for trip, numbers in ((20, 1), (60, 2)):
        drop = {'drop': _first_syns(numbers)}
        yield Case(
            f'syn-lost-{numbers}-rtt{trip}',
            'R11',
            requests(2, (200,), (1_000,)),
            path(trip, up=drop),
            LINUX,
            LINUX,
            ('syn_retransmit',),
            taps=(0,),
        )


def _first_syns(count):
    seen = []

    def drop(p, _):
        if p.flags == 2:
            seen.append(p)
            return len(seen) <= count
        return False

    return drop


def past_loss():
    """R12: a loss long ago does not explain a window that is full now."""
    for trip, window in ((10, 20_000), (40, 24_000), (80, 16_000), (25, 24_000)):
        for server in (LINUX, WINDOWS_10):
            yield Case(
                f'past-loss-{server.name}-rtt{trip}-{window}',
                'R12',
                transfer([900_000], up=False),
                path(trip, down={'drop': lost(60)}),
                LINUX.but(window=window),
                server,
                ('receive_window',),
                {'weak': ['congestion_window']},
            )
    for trip, rate in ((10, 10e6), (40, 4e6), (80, 6e6)):
        patient = LINUX.but(rto_min=3 * SECOND, probe=False)
        yield Case(
            f'past-loss-link-rtt{trip}',
            'R12',
            transfer([1_500_000], up=False),
            path(trip, rate, down={'drop': lost(12)}),
            LINUX.but(window=300_000),
            patient,
            ('clean',),
            {**CARRIES, 'also': ('congestion_window', 'fast_recovery', 'slow_start', 'queueing')},
        )
        yield Case(
            f'past-loss-pause-rtt{trip}',
            'R12',
            transfer([7_000] * 30, up=False, pause=(40 + trip) * MS),
            path(trip, down={'drop': lost(7)}),
            LINUX,
            LINUX.but(idle='keep'),
            (),
            {**PAUSES, 'also': ('congestion_window', 'fast_recovery', 'slow_start', 'tail_loss_probe', 'nagle')},
        )


def far_kernel():
    """R13, R20: think ends where the far kernel speaks; the last ACK of a transfer is nobody's."""
    for trip, spike, work in ((20, 280, 16), (60, 150, 5), (5, 400, 2)):
        for count in (1, 3):
            name = f'far-spike-rtt{trip}-{spike}-{count}'

            # the request waits on the way; its ACK and its answer show when it arrived
            def extra(p, now, s=spike):
                return s * MS if p.payload == 200 else 0

            yield Case(
                name,
                'R13',
                requests(count, (200,), (3_000,), work * MS, 500 * MS),
                path(trip, up={'extra': extra}),
                LINUX.but(probe=False, rto_min=3 * SECOND),
                LINUX,
                (),
                {
                    'kind': 'dominant',
                    'dominant': ['queueing', 'path_delay', 'unexplained'],
                    'weak': [],
                    'parts': [],
                    'forbidden': (
                        'receive_window',
                        'nagle',
                        'send_buffer',
                        'retransmission_timeout',
                        'tail_loss_probe',
                    ),
                },
                taps=(0,),
            )
        yield Case(
            f'far-work-rtt{trip}-{spike}',
            'R13',
            requests(3, (200,), (3_000,), (spike + work) * MS, 500 * MS),
            path(trip),
            LINUX,
            LINUX,
            ('clean',),
            WORKS,
        )
    for trip, server in (
        (10, WINDOWS),
        (40, LINUX.but(quick=0, pingpong=False, delay=200 * MS)),
        (100, MACOS.but(push_acks=False)),
    ):
        yield Case(
            f'last-ack-rtt{trip}',
            'R20',
            transfer([5 * 1_448 + 300]),
            path(trip),
            LINUX,
            server,
            ('clean',),
            {
                'forbidden': (
                    'delayed_ack',
                    'nagle',
                    'nagle_delayed_ack',
                    'retransmission_timeout',
                    'server_think',
                    'client_think',
                )
            },
        )


def split():
    """R14: a proxy acknowledges; what it passes on takes the far trip."""
    for near, far, count in ((0.2, 25, 10), (1, 80, 6), (0.4, 150, 5), (5, 60, 6)):
        server = LINUX.but(syn_ack=far * MS)
        yield Case(
            f'split-rtt{near}-{far}',
            'R14',
            requests(count, (200,), (3_000,), far * MS, 50 * MS),
            path(near),
            LINUX,
            server,
            (),
            {'kind': 'dominant', 'dominant': ['path_delay', 'unexplained'], 'weak': ['server_think'], 'parts': []},
            taps=(0,),
        )
        yield Case(
            f'split-work-rtt{near}-{far}',
            'R14',
            requests(count, (200,), (3_000,), (far + 900) * MS, 50 * MS),
            path(near),
            LINUX,
            server,
            ('clean',),
            {**WORKS, 'doubt_ms': count * far},
            taps=(0,),
        )
        yield Case(
            f'split-not-rtt{near}-{far}',
            'R14',
            requests(count, (200,), (3_000,), far * MS, 50 * MS),
            path(near),
            LINUX,
            LINUX,
            ('clean',),
            WORKS,
            taps=(0,),
        )


def black_hole():
    """R15: full segments vanish and smaller ones pass; and timeouts that are plain losses."""
    for trip, after, smaller in ((2, 2, 536), (30, 2, 536), (80, 3, 1_024), (20, 1, 1_200)):
        hole = {'mtu': 1_400}
        stack = WINDOWS.but(smaller_after=after, smaller=smaller, initial=3)
        yield Case(
            f'hole-rtt{trip}-{smaller}',
            'R15',
            requests(1, (200,), (12_000,)),
            path(trip, down=hole),
            LINUX,
            stack,
            ('path_mtu', 'retransmission_timeout'),
            {'dominant': ['path_mtu'], 'weak': ['retransmission_timeout']},
            taps=(1,),
        )
        yield Case(
            f'hole-up-rtt{trip}-{smaller}',
            'R15',
            transfer([12_000], answer=30),
            path(trip, up=hole),
            stack,
            LINUX,
            ('path_mtu', 'retransmission_timeout'),
            {'dominant': ['path_mtu'], 'weak': ['retransmission_timeout']},
            taps=(0,),
        )
        yield Case(
            f'hole-not-rtt{trip}-{smaller}',
            'R15',
            requests(1, (200,), (12_000,)),
            path(trip, down={'drop': lost(0, 1, 2, 3)}),
            LINUX,
            stack.but(smaller_after=0),
            ('retransmission_timeout',),
            {'forbidden': ('path_mtu', 'nagle', 'receive_window')},
        )


def timers():
    """R16: delayed ACKs of 100 to 500 ms that limit, and those that cost nothing."""
    for name in ('windows', 'slow-acks', 'bsd', 'solaris', 'macos', 'device'):
        peer = STACKS[name].but(push_acks=False, every=2, quick=0, window=20_000)
        sender = WINDOWS.but(nagle='off', rto_min=SECOND)
        for trip in (1, 25):
            yield Case(
                f'delack-one-{name}-rtt{trip}',
                'R16',
                transfer([10 * 1_400]),
                path(trip),
                sender.but(initial=1, grow='none', mss=1_400),
                peer,
                ('delayed_ack', 'slow_start', 'congestion_window'),
                {'dominant': ['delayed_ack'], 'weak': ['slow_start', 'congestion_window', 'receive_window']},
            )
            yield Case(
                f'delack-nagle-{name}-rtt{trip}',
                'R16',
                requests(6, (10, 300), (50,), 2 * MS),
                path(trip),
                sender.but(nagle='classic'),
                peer,
                ('nagle_delayed_ack',),
            )
            yield Case(
                f'delack-free-{name}-rtt{trip}',
                'R16',
                transfer([1_000] * 20, pause=170 * MS),
                path(trip),
                sender,
                peer,
                ('clean',),
                PAUSES,
            )
            # as long as a cork's timer may be: either reading is fair to half
            yield Case(
                f'delack-free-slow-{name}-rtt{trip}',
                'R16',
                transfer([1_000] * 20, pause=330 * MS),
                path(trip),
                sender,
                peer,
                ('clean',),
                {'kind': 'dominant', 'dominant': ['sender_pause'], 'weak': ['cork'], 'also': ('cork',), 'parts': []},
            )
    for trip, jitter in ((5, 15), (20, 25), (40, 20)):
        extra = _noise(jitter)
        yield Case(
            f'delack-noise-rtt{trip}',
            'R16',
            transfer([3_000] * 25, pause=120 * MS),
            path(trip, down={'extra': extra}),
            LINUX.but(nagle='off'),
            LINUX,
            ('clean',),
            PAUSES,
        )


def _noise(most):
    """A delay that differs from packet to packet."""
    state = [12345]

    def extra(_p, _now):
        state[0] = (state[0] * 1103515245 + 12345) & 0x7FFFFFFF
        return state[0] % (most * MS)

    return extra


FAMILIES = (tls, tls_request, held_first, refused, past_loss, far_kernel, split, black_hole, timers)
