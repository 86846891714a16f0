"""Workloads that are no single request after another: both ways at once, multiplexed, pipelined, in bursts, after idle times."""

import dataclasses

from synth.habits import LINUX, STACKS
from synth.sim import MS, SECOND

from families.base import CARRIES, Case, lost, path, requests

STREAMS, FRAMES = 6, 5
SENDERS = ('linux', 'windows', 'macos', 'bsd')
LOSSES = ('fast_recovery', 'retransmission_timeout', 'tail_loss_probe', 'syn_retransmit', 'path_mtu')


def ends(source, sink):
    """Two applications that close once both are done."""

    def client():
        yield from source()
        yield ('close',)
        yield ('closed',)

    def server():
        yield from sink()
        yield ('closed',)
        yield ('close',)

    return client, server


def bidirectional():
    """Both ends send at once: each byte acknowledges the other's, so hardly a pure ACK is seen."""
    for name in SENDERS:
        stack = STACKS[name]
        for trip in (8, 45):
            for work, window, links, meant, spec in (
                ('window', 12_000, path(trip), (), {'kind': 'any'}),
                ('link', 400_000, path(trip, 3e6), ('clean',), CARRIES),
            ):

                def both(work=work):
                    for _ in range(12):
                        yield 'write', 20_000
                    yield 'read', 12 * 20_000

                near = stack.but(
                    window=window, scale=0 if window < 65_536 else 7, initial=10, nagle='off', rto_min=3 * SECOND
                )
                yield Case(
                    f'both-ways-{work}-{name}-rtt{trip}',
                    'R3 R6',
                    ends(both, both),
                    links,
                    near,
                    dataclasses.replace(near, name='far'),
                    meant,
                    {**spec, 'parts': [], 'forbidden': (*LOSSES, 'nagle', 'nagle_delayed_ack', 'slow_reader')},
                )


def multiplexed():
    """HTTP/2: requests leave while answers come; answers are cut into frames of all streams in turn."""
    for name in SENDERS:
        stack = STACKS[name]
        for trip in (12, 60):
            for work, frame, pause, links, client, server, meant, spec in (
                (
                    'link',
                    8_000,
                    0,
                    path(trip, 5e6),
                    LINUX.but(window=400_000),
                    stack.but(initial=10),
                    ('clean',),
                    CARRIES,
                ),
                (
                    'slow-server',
                    1_200,
                    90,
                    path(trip),
                    LINUX,
                    stack.but(initial=10, nagle='off'),
                    ('clean',),
                    {'kind': 'any', 'parts': []},
                ),
                (
                    'window',
                    8_000,
                    0,
                    path(trip),
                    LINUX.but(window=10_000, scale=0),
                    stack.but(initial=10, nagle='off'),
                    ('receive_window',),
                    {'weak': ['congestion_window', 'slow_start'], 'parts': []},
                ),
            ):

                def source(frame=frame, trip=trip):
                    for n in range(STREAMS):
                        yield 'write', 60
                        yield 'sleep', (5 + n) * MS
                    yield 'read', STREAMS * FRAMES * frame
                    yield 'sleep', 2 * trip * MS
                    yield 'write', 13

                def sink(frame=frame, pause=pause):
                    yield 'read', 60
                    for n in range(FRAMES * STREAMS):
                        if pause:
                            yield 'sleep', pause * MS
                        yield 'write', frame
                        if n < STREAMS - 1:
                            yield 'read', 60
                    yield 'read', 13

                yield Case(
                    f'streams-{work}-{name}-rtt{trip}',
                    'R4 R6 R13',
                    ends(source, sink),
                    links,
                    client.but(nagle='off'),
                    server,
                    meant,
                    {**spec, 'forbidden': (*LOSSES, 'nagle', 'nagle_delayed_ack', 'slow_reader')},
                )


def pipelined():
    """Requests that do not wait for the answers before them."""
    for name in SENDERS:
        stack = STACKS[name]
        for trip in (5, 40):
            for work, size, think, count in (('think', 900, 120, 8), ('bulk', 40_000, 0, 6)):

                def source(size=size, count=count):
                    for _ in range(count):
                        yield 'write', 180
                    yield 'read', count * size

                def sink(size=size, think=think, count=count):
                    for _ in range(count):
                        yield 'read', 180
                        if think:
                            yield 'sleep', think * MS
                        yield 'write', size

                yield Case(
                    f'pipelined-{work}-{name}-rtt{trip}',
                    'R4 R7',
                    ends(source, sink),
                    path(trip) if think else path(trip, 4e6),
                    LINUX.but(nagle='off', window=300_000),
                    stack.but(initial=10, nagle='off'),
                    ('clean',),
                    {'kind': 'any', 'parts': [], 'forbidden': (*LOSSES, 'nagle', 'nagle_delayed_ack', 'receive_window')}
                    if think
                    else {**CARRIES, 'parts': []},
                )


def bursty():
    """An application that sends some segments now and then: what fits the window waits for nobody, what does not is a limit."""
    for name in SENDERS:
        stack = STACKS[name]
        for trip in (10, 50):
            for work, size, meant in (('small', 4_000, 'clean'), ('large', 60_000, None)):

                def source(size=size, trip=trip):
                    for n in range(10):
                        if n:
                            yield 'sleep', (150 + 2 * trip) * MS
                        yield 'write', size

                def sink(size=size):
                    yield 'read', 10 * size

                yield Case(
                    f'bursts-{work}-{name}-rtt{trip}',
                    'R4 R8',
                    ends(source, sink),
                    path(trip),
                    stack.but(initial=10, nagle='off', idle='keep'),
                    LINUX.but(window=200_000),
                    (meant,) if meant else (),
                    {
                        'kind': 'dominant',
                        'dominant': ['sender_pause'],
                        'weak': ['slow_start'],
                        'parts': [],
                        'also': ('slow_start', 'congestion_window'),
                    },
                )


def long_idle():
    """Minutes without a word, then a request: the pause is nobody's limit, and what follows it is read by itself."""
    for name in SENDERS:
        stack = STACKS[name]
        for trip, idle in ((10, 45), (70, 130)):
            yield Case(
                f'idle-clean-{name}-rtt{trip}',
                'R8 R18',
                requests(4, (300,), (9_000,), 4 * MS, idle * SECOND),
                path(trip),
                LINUX.but(nagle='off'),
                stack.but(initial=10, nagle='off', idle='keep'),
                ('clean',),
                {'parts': [], 'forbidden': (*LOSSES, 'idle_restart', 'receive_window', 'send_buffer')},
            )
            yield Case(
                f'idle-restart-{name}-rtt{trip}',
                'R8',
                requests(4, (300,), (110_000,), 0, idle * SECOND),
                path(trip),
                LINUX.but(nagle='off', window=400_000),
                stack.but(initial=10, nagle='off', idle='halve'),
                ('idle_restart', 'slow_start'),
                {'weak': ['congestion_window', 'slow_start', 'idle_restart']},
            )
            yield Case(
                f'idle-lost-{name}-rtt{trip}',
                'R5 R8',
                requests(3, (300,), (1_200,), 3 * MS, idle * SECOND),
                path(trip, up={'drop': lost(1)}),
                LINUX.but(nagle='off'),
                stack.but(nagle='off'),
                ('tail_loss_probe', 'retransmission_timeout'),
                {'parts': []},
                taps=(0,),
            )


FAMILIES = (bidirectional, multiplexed, pipelined, bursty, long_idle)
