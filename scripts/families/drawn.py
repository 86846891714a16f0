"""Conversations drawn at random: any stack at either end, any workload, any path. Another seed gives a set that nobody has seen.

What a family states by hand (what its cases are meant to show) cannot be stated here: labels are the simulation's alone.
"""

import random

from synth.habits import STACKS
from synth.sim import MS, SECOND

from families.base import Case, path, requests, stops, transfer
from families.workloads import ends

TRIPS = (0.5, 200)  # ms, drawn evenly by magnitude
COUNT = 300


def between(chance, low, high):
    """A number between two, evenly by magnitude."""
    return low * (high / low) ** chance.random()


def size(chance, low, high):
    return int(between(chance, low, high))


def work(chance, trip):
    """(name, applications)"""
    kind = chance.choice(
        ('download', 'upload', 'requests', 'small', 'bursts', 'pipelined', 'streams', 'reader', 'drip')
    )
    if kind == 'download':
        return kind, transfer([size(chance, 8_000, 900_000)], up=False)
    if kind == 'upload':
        return kind, transfer([size(chance, 8_000, 600_000)], answer=chance.choice((0, 60)))
    if kind == 'requests':
        apps = requests(
            chance.randrange(2, 12),
            (size(chance, 60, 3_000),),
            (size(chance, 60, 90_000),),
            int(between(chance, 0.2, 500) * MS),
            int(between(chance, 1, 4_000) * MS),
        )
        return kind, apps
    if kind == 'small':
        request = tuple(size(chance, 2, 900) for _ in range(chance.randrange(1, 4)))
        answer = tuple(size(chance, 2, 2_000) for _ in range(chance.randrange(1, 3)))
        return kind, requests(chance.randrange(3, 15), request, answer, 0, int(between(chance, 1, 600) * MS))
    if kind == 'bursts':
        pause = int(max(between(chance, 10, 900), 1.5 * trip) * MS)
        return kind, transfer([size(chance, 300, 60_000)] * chance.randrange(4, 20), chance.random() < 0.5, pause)
    if kind == 'drip':
        pause = int(between(chance, 0.5, 60) * MS)
        return kind, transfer([size(chance, 100, 9_000)] * chance.randrange(10, 60), chance.random() < 0.5, pause)
    if kind == 'reader':
        total = size(chance, 200_000, 600_000)
        return kind, transfer(
            [total], reader=stops(size(chance, 2_000, 60_000), int(between(chance, 300, 6_000) * MS), total)
        )
    return kind, (pipelined if kind == 'pipelined' else streams)(chance)


def pipelined(chance):
    """Requests that do not wait for answers."""
    count, answer, think = chance.randrange(3, 9), size(chance, 100, 50_000), int(between(chance, 0.2, 200) * MS)

    def source():
        for _ in range(count):
            yield 'write', 150
        yield 'read', count * answer

    def sink():
        for _ in range(count):
            yield 'read', 150
            yield 'sleep', think
            yield 'write', answer

    return ends(source, sink)


def streams(chance):
    """Requests that leave while answers come."""
    count, frame, apart = chance.randrange(3, 8), size(chance, 500, 20_000), int(between(chance, 1, 80) * MS)

    def source():
        for _ in range(count):
            yield 'write', 70
            yield 'sleep', apart
        yield 'read', 4 * count * frame

    def sink():
        yield 'read', 70
        for n in range(4 * count):
            yield 'write', frame
            if n < count - 1:
                yield 'read', 70

    return ends(source, sink)


def link(chance, trip):
    """A path, and whether something on it is lost."""
    rate = int(between(chance, 1e6, 80e6)) if chance.random() < 0.4 else 0
    if chance.random() < 0.75:
        return path(trip, rate)
    number, count = size(chance, 1, 60), chance.choice((1, 1, 1, 2))
    return path(trip, rate, down={'drop': lambda p, n: bool(p.payload) and number <= n < number + count})


def drawn(seed, count=COUNT):
    """[Case]"""
    out = []
    for n in range(count):
        chance = random.Random(f'{seed}:{n}')
        trip = round(between(chance, *TRIPS), 2)
        name, apps = work(chance, trip)
        stacks = []
        for _ in range(2):
            stack = chance.choice(list(STACKS.values()))
            changes = {'nagle': 'off'} if chance.random() < 0.4 else {}
            if chance.random() < 0.25:
                changes['window'] = size(chance, 6_000, 60_000)
            if chance.random() < 0.15 and name not in ('pipelined', 'streams'):
                changes['send_buffer'] = size(chance, 8_000, 60_000)
            # far enough from a queue of its own that no timer runs out without need
            changes['rto_min'] = max(stack.rto_min, 2 * SECOND if chance.random() < 0.2 else 0)
            stacks.append(stack.but(**changes))
        out.append(
            Case(
                f'drawn-{seed}-{n}-{name}-{stacks[0].name}-{stacks[1].name}-rtt{trip:g}',
                'R18',
                apps,
                link(chance, trip),
                *stacks,
            )
        )
    return out
