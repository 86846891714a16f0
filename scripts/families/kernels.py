"""What ACKs and ICMP tell of the far kernel: holds across a turn, requests that came late, hosts seen before."""

from synth.habits import LINUX, MACOS, SOLARIS, WINDOWS, WINDOWS_10
from synth.sim import MS

from families.base import Case, path

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


FAMILIES = (held_pushed,)
