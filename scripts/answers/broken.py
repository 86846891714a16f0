"""Good answers broken in every way: each must be noticed under its rule."""

import copy

import common

from answers.checks import check
from answers.packets import facts_of
from answers.sample import good_answer


def busiest(answer):
    """The connection with the most spans in exchanges."""
    return max(answer['connections'], key=lambda c: sum(len(x['spans']) for x in c['exchanges']))


def some_exchange(c, spans=1):
    """Its longest exchange with that many spans."""
    many = [x for x in c['exchanges'] if len(x['spans']) >= spans]
    return max(many, key=lambda x: x['end_ns'] - x['start_ns'])


def call_unexplained(answer):
    """The longest span becomes unexplained, in budget and findings as well: only the limit can notice."""
    c = busiest(answer)
    span = max((s for x in c['exchanges'] for s in x['spans']), key=lambda s: s['end_ns'] - s['start_ns'])
    old, length = span['cause'], span['end_ns'] - span['start_ns']
    span['cause'] = common.UNEXPLAINED
    c['budget'][old] -= length
    c['budget'][common.UNEXPLAINED] = c['budget'].get(common.UNEXPLAINED, 0) + length
    for listed in (c['findings'], answer['findings']):
        for f in listed:
            if f['cause'] == old and f['side'] == span['side']:
                f['lost_ns'] -= length
        listed.sort(key=lambda f: -f['lost_ns'])


def no_exchanges(answer):
    """All exchanges vanish into one gap and the payload with them: only the packets can tell."""
    for c in answer['connections']:
        start = c['setup']['end_ns'] if c['setup'] else c['start_ns']
        spans = (
            [
                dict(
                    copy.deepcopy(some_exchange(c)['spans'][0]),
                    cause='client_think',
                    start_ns=start,
                    end_ns=c['end_ns'],
                )
            ]
            if c['exchanges']
            else []
        )
        if not spans:
            continue
        c['exchanges'], c['exchanges_omitted'], c['gaps_omitted'] = [], None, None
        c['gaps'] = [{'start_ns': start, 'end_ns': c['end_ns'], 'spans': spans}]
        c['budget'] = {}
        for s in c['setup']['spans'] if c['setup'] else []:
            c['budget'][s['cause']] = c['budget'].get(s['cause'], 0) + s['end_ns'] - s['start_ns']
        c['gap_budget'] = {'client_think': c['end_ns'] - start}
        c['bytes'] = dict(c['setup']['bytes']) if c['setup'] else {'client': 0, 'server': 0}
        c['findings'] = []
    answer['findings'] = []


def swap_spans(answer):
    spans = some_exchange(busiest(answer), 2)['spans']
    spans[0], spans[1] = spans[1], spans[0]


def change(path, by):
    """A mutation that adds to a number; `path` starts at the busiest connection."""

    def mutate(answer):
        where = path(answer, busiest(answer))
        holder, key = where
        holder[key] += by

    return mutate


def exchange_span(n, key):
    return lambda _, c: (some_exchange(c, 2)['spans'][n], key)


def drop_first_span(answer):
    some_exchange(busiest(answer), 2)['spans'].pop(0)


def set_cause(answer):
    some_exchange(busiest(answer))['spans'][0]['cause'] = 'gremlins'


def relabel(answer):
    some_exchange(busiest(answer))['spans'][0]['cause'] = common.UNEXPLAINED


def forget_gap(answer):
    busiest(answer)['gaps'].pop(0)


def forget_exchange(answer):
    c = busiest(answer)
    c['exchanges'].remove(some_exchange(c))


def setup_away(answer):
    busiest(answer)['setup'] = None


def other_port(answer):
    c = busiest(answer)
    c['client'] = c['client'].rpartition(':')[0] + ':9'


def key_outside(answer):
    frames = some_exchange(busiest(answer))['spans'][0]['frames']
    frames['key'] = [frames['last'] + 1]


def frame_beyond(answer):
    frames = some_exchange(busiest(answer))['spans'][0]['frames']
    frames['last'] = answer['capture']['packets'] + 1


def no_why(answer):
    some_exchange(busiest(answer))['spans'][0]['why'] = ''


def twice(answer):
    answer['connections'].append(copy.deepcopy(busiest(answer)))


def certain(answer):
    some_exchange(busiest(answer))['spans'][0]['confidence'] = 1.2


def empty_list(answer):
    c = busiest(answer)
    c['exchanges'], c['exchanges_omitted'] = [], None


def mutations():
    """(name, rule that must notice, how to break a good answer)."""
    return [
        ('a nanosecond between two spans', 'cover', change(exchange_span(1, 'start_ns'), 1)),
        ('a nanosecond of overlap', 'cover', change(exchange_span(0, 'end_ns'), 1)),
        ('the last span ends early', 'cover', change(exchange_span(-1, 'end_ns'), -1)),
        ('the first span is missing', 'cover', drop_first_span),
        ('spans out of order', 'cover', swap_spans),
        ('a time with a fraction', 'time', change(exchange_span(0, 'end_ns'), 0.5)),
        ('setup covered short', 'cover', change(lambda _, c: (c['setup']['spans'][-1], 'end_ns'), -1)),
        ('a gap covered short', 'cover', change(lambda _, c: (c['gaps'][0]['spans'][0], 'start_ns'), 1)),
        (
            'an exchange that overlaps its neighbour',
            'tile',
            change(lambda _, c: (c['exchanges'][-1], 'start_ns'), -(10**15)),
        ),
        ('a gap is missing', 'tile', forget_gap),
        ('an exchange is missing', 'tile', forget_exchange),
        ('setup is missing', 'tile', setup_away),
        ('the connection is a nanosecond longer', 'tile', change(lambda _, c: (c, 'end_ns'), 1)),
        ('omitted time is wrong', 'tile', change(lambda _, c: (c['exchanges_omitted'], 'duration_ns'), 1)),
        ('a request one byte larger', 'bytes', change(lambda _, c: (c['exchanges'][0], 'request_bytes'), 1)),
        ('a response one byte larger', 'bytes', change(lambda _, c: (c['exchanges'][0], 'response_bytes'), 1)),
        ('omitted bytes are wrong', 'bytes', change(lambda _, c: (c['exchanges_omitted'], 'request_bytes'), 1)),
        ('setup claims a byte', 'bytes', change(lambda _, c: (c['setup']['bytes'], 'client'), 1)),
        (
            'bytes wrong everywhere alike',
            'payload',
            both(
                change(lambda _, c: (c['exchanges'][0], 'request_bytes'), 1),
                change(lambda _, c: (c['bytes'], 'client'), 1),
            ),
        ),
        ('budget a nanosecond off', 'budget', change(lambda _, c: (c['budget'], next(iter(c['budget']))), 1)),
        (
            'gap budget a nanosecond off',
            'budget',
            change(lambda _, c: (c['gap_budget'], next(iter(c['gap_budget']))), 1),
        ),
        ('a span renamed to unexplained', 'budget', relabel),
        ('a span renamed to unexplained, books in order', 'unexplained', call_unexplained),
        ('no exchanges, payload left', 'exchanges', empty_list),
        ('no exchanges, books in order', 'payload', no_exchanges),
        ('a cause that does not exist', 'cause', set_cause),
        ('a confidence above 1', 'confidence', certain),
        ('a span without a sentence', 'why', no_why),
        ('a frame after the last', 'frames', frame_beyond),
        ('a key frame outside its range', 'frames', key_outside),
        ('a connection that is not in the file', 'frames', other_port),
        ('a finding a nanosecond off', 'findings', change(lambda _, c: (c['findings'][0], 'lost_ns'), 1)),
        ('a finding of the capture off', 'findings', change(lambda a, _: (a['findings'][0], 'lost_ns'), 1)),
        ('one packet too many in the capture', 'packets', change(lambda a, _: (a['capture'], 'packets'), 1)),
        ('one TCP packet too many', 'packets', change(lambda a, _: (a['capture'], 'tcp_packets'), 1)),
        ('one packet too many of a side', 'packets', change(lambda _, c: (c['packets'], 'client'), 1)),
        ('a connection listed twice', 'identity', twice),
        ('another schema', 'schema', change(lambda a, _: (a, 'schema'), 1)),
    ]


def both(one, other):
    """Two mutations."""

    def mutate(answer):
        one(answer)
        other(answer)

    return mutate


def self_test(binary, files):
    """Every mutation of a good answer must be noticed under its rule. Failures are counted."""
    cases = [('made up', *good_answer(), 'labelled')]
    for path in files:
        answer, _ = common.explain(binary, path)
        cases.append((common.shown(path), answer, facts_of(path), 'labelled'))
    failed = 0
    for name, answer, facts, kind in cases:
        clean = check(answer, facts, kind)
        if clean.problems:
            print(f'FAIL {name}: the unchanged answer has problems: {clean.problems[:3]}')
            failed += 1
            continue
        caught = impossible = 0
        for what, rule, mutate in mutations():
            broken = copy.deepcopy(answer)
            try:
                mutate(broken)
            except (KeyError, IndexError, TypeError, ValueError):
                impossible += 1  # this answer has nothing that could be broken so
                continue
            rules = check(broken, facts, kind).rules()
            if rule in rules:
                caught += 1
            else:
                failed += 1
                print(f'FAIL {name}: {what}: not noticed by {rule} (by {", ".join(sorted(rules)) or "nothing"})')
        if name == 'made up' and impossible:
            failed += 1
            print(f'FAIL {name}: {impossible} mutations do not apply')
        print(f'check_json: {name}: {caught} of {len(mutations()) - impossible} mutations noticed')
    return failed
