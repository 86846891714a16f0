"""What ACKs and ICMP tell of the far kernel: holds across a turn, requests that came late, hosts seen before."""

from synth.habits import LINUX, MACOS, SOLARIS, WINDOWS, WINDOWS_10
from synth.sim import MS, SECOND

from families.base import WORKS, Case, path, requests, transfer

HOLDS = ('nagle', 'nagle_delayed_ack')


def held_pushed():
    """R10: a push of the server crosses the first of two small writes and is acknowledged by the second, which Nagle holds."""
    for trip, stack in (
        (1, LINUX),
        (8, WINDOWS),
        (20, LINUX),
        (30, MACOS),
        (60, LINUX),
        (60, WINDOWS_10),
        (90, SOLARIS),
    ):
        for kind in ('nagle', 'nodelay', 'thinks'):

            def client(thinks=kind == 'thinks'):
                for n in range(12):
                    yield 'write', 4
                    if thinks:
                        yield 'sleep', (3 + 37 * n % 170) * MS
                    yield 'write', 60
                    yield 'sleep', (400 - (3 + 37 * n % 170) * thinks) * MS
                yield ('close',)

            def server(trip=trip):
                # on its way as the next small write leaves
                yield 'sleep', int((400 - trip / 2) * MS)
                for _ in range(11):
                    yield 'write', 700
                    yield 'sleep', 400 * MS
                yield ('close',)

            held = kind == 'nagle'
            spec = (
                {'dominant': list(HOLDS), 'weak': [], 'asked': HOLDS}
                if held
                else {'kind': 'any', 'parts': [], 'forbidden': (*HOLDS, 'cork', 'send_buffer', 'receive_window')}
            )
            yield Case(
                f'held-pushed-{stack.name}-{kind}-rtt{trip}',
                'R10',
                (client, server),
                path(trip),
                stack.but(nagle=stack.nagle if held else 'off', initial=10),
                LINUX.but(pingpong=False, quick=0),
                HOLDS if held else (),
                spec,
            )


def late_requests():
    """R13: what the answer itself acknowledges for the first time came no longer before than its host delays ACKs."""
    for trip, late, work, server in (
        (10, 200, 5, LINUX),
        (40, 300, 12, LINUX),
        (80, 500, 3, LINUX),
        (25, 1_400, 250, WINDOWS),
        (60, 2_500, 240, WINDOWS),
    ):
        # each request waits on its way; 'lost': it does not, and the pure ACK is lost while the server works
        for kind in ('late', 'works', 'lost', 'lost-unnumbered'):
            held = kind == 'late'
            up = {'extra': lambda p, now, s=late: s * MS if p.payload == 200 else 0} if held else {}
            down = {'drop': lambda p, n: p.pure_ack() and p.ack > 1} if kind.startswith('lost') else {}
            host = server.but(ids='zero') if kind == 'lost-unnumbered' else server
            yield Case(
                f'late-request-{kind}-{server.name}-rtt{trip}-{late}',
                'R13',
                requests(4, (200,), (2_000,), (work if held else work + late) * MS, 300 * MS),
                path(trip, up=up, down=down),
                LINUX.but(probe=False, rto_min=8 * SECOND),
                host,
                () if held else ('clean',),
                {
                    'kind': 'dominant',
                    'dominant': ['queueing', 'path_delay', 'unexplained'],
                    'weak': [],
                    'also': ('queueing',),
                    'parts': [],
                }
                if held
                else WORKS,
                taps=(0,),
            )


def told():
    """R15: a router says that full segments are too large: who heeds it sends them again at once, who does not by timers."""
    losses = ('fast_recovery', 'retransmission_timeout', 'tail_loss_probe', 'spurious_recovery')
    for trip, mtu, back, stack in (
        (2, 1_492, 1, LINUX),
        (30, 1_400, 5, LINUX),
        (80, 1_280, 30, MACOS),
        (20, 1_480, 2, WINDOWS_10),
        (150, 1_476, 120, LINUX),
        (8, 1_450, 3, SOLARIS),
    ):
        hole = {'mtu': mtu, 'tells': back * MS}
        for up in (False, True):
            links = path(trip, up=hole) if up else path(trip, down=hole)
            apps = transfer([30_000], answer=30) if up else requests(2, (200,), (30_000,))
            where = 'up' if up else 'down'
            deaf = stack.but(heeds=False, smaller_after=1 + trip % 3, smaller=536, initial=3)
            yield Case(
                f'told-{where}-{stack.name}-rtt{trip}-{mtu}',
                'R15',
                apps,
                links,
                *((stack, LINUX) if up else (LINUX, stack)),
                (),
                {
                    'kind': 'any',
                    'asked': ('path_mtu',),
                    'forbidden': (*losses, 'nagle', 'nagle_delayed_ack', 'send_buffer', 'receive_window'),
                },
                taps=(0 if up else 1,),
            )
            yield Case(
                f'told-deaf-{where}-{stack.name}-rtt{trip}-{mtu}',
                'R15',
                apps,
                links,
                *((deaf, LINUX) if up else (LINUX, deaf)),
                ('path_mtu', *losses),
                {'dominant': ['path_mtu'], 'weak': [], 'forbidden': (*losses, 'nagle', 'receive_window')},
                taps=(0 if up else 1,),
            )


FAMILIES = (held_pushed, late_requests, told)
