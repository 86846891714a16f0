"""A small right answer, made by hand, and the packets to it."""

import copy

import capfile

from answers.packets import Facts, Frame, endpoint


def span(cause, start, end, first, last, side=None):
    return {
        'id': f'{start}',
        'cause': cause,
        'detail': None,
        'side': side,
        'start_ns': start,
        'end_ns': end,
        'frames': {'first': first, 'last': last, 'key': [first]},
        'confidence': 0.9,
        'alternatives': [],
        'source': 'inferred',
        'why': 'because',
    }


def exchange(number, start, end, sent, got, spans):
    return {
        'id': number,
        'start_ns': start,
        'request_end_ns': start,
        'response_start_ns': end,
        'end_ns': end,
        'with_setup_ns': None,
        'request_bytes': sent,
        'response_bytes': got,
        'turns': 1,
        'duplex': False,
        'complete': True,
        'ended': 'complete',
        'spans': spans,
    }


def finding(cause, kind, lost, side):
    return {
        'id': cause,
        'cause': cause,
        'class': kind,
        'side': side,
        'lost_ns': lost,
        'share': 0.2,
        'occurrences': 1,
        'connections': [1],
        'why': 'because',
        'fixes': [],
        'example': {'connection': 1, 'exchange': 1, 'frames': {'first': 4, 'last': 6, 'key': [5]}},
    }


def connection(nagle, think):
    """Setup, two exchanges, one that was omitted, gaps."""
    return {
        'id': 1,
        'client': '10.0.0.1:4000',
        'server': '10.0.0.2:80',
        'roles': 'syn',
        'start_ns': 0,
        'end_ns': 9000,
        'opened': 'handshake',
        'closed': 'fin',
        'vantage': 'client',
        'protocol': None,
        'quality': [],
        'bytes': {'client': 60, 'server': 90},
        'packets': {'client': 6, 'server': 5},
        'retransmitted': {'client': 0, 'server': 0},
        'setup': {
            'start_ns': 0,
            'end_ns': 1000,
            'bytes': {'client': 0, 'server': 0},
            'spans': [span('handshake', 0, 1000, 1, 3)],
        },
        'exchanges': [
            exchange(
                1,
                1000,
                5000,
                20,
                30,
                [
                    span('nagle_delayed_ack', 1000, 4000, 4, 6, 'client'),
                    span('server_think', 4000, 5000, 6, 7, 'server'),
                ],
            ),
            exchange(
                2,
                5500,
                7000,
                20,
                30,
                [span('server_think', 5500, 6900, 8, 9, 'server'), span('path_delay', 6900, 7000, 8, 9)],
            ),
        ],
        'exchanges_omitted': {
            'count': 1,
            'duration_ns': 700,
            'request_bytes': 20,
            'response_bytes': 30,
            'budget': {'path_delay': 700},
        },
        'gaps': [
            {'start_ns': 5000, 'end_ns': 5500, 'spans': [span('client_think', 5000, 5500, 7, 8, 'client')]},
            {'start_ns': 8000, 'end_ns': 9000, 'spans': [span('client_think', 8000, 9000, 9, 11, 'client')]},
        ],
        'gaps_omitted': {'count': 1, 'duration_ns': 300, 'budget': {'client_think': 300}},
        'budget': {'handshake': 1000, 'nagle_delayed_ack': 3000, 'server_think': 2400, 'path_delay': 800},
        'gap_budget': {'client_think': 1800},
        'findings': [copy.deepcopy(nagle), copy.deepcopy(think)],
    }


def packets():
    """The frames of that connection."""
    one, other = endpoint('10.0.0.1:4000'), endpoint('10.0.0.2:80')
    #         number: (from the client, time, payload so far, payload)
    frames = {
        1: (1, 0, 0, 0),
        2: (0, 500, 0, 0),
        3: (1, 1000, 0, 0),
        4: (1, 1000, 0, 5),
        5: (0, 3900, 0, 0),
        6: (1, 4000, 5, 15),
        7: (0, 5000, 0, 30),
        8: (1, 5500, 20, 20),
        9: (0, 7000, 30, 30),
        10: (1, 7500, 40, 20),
        11: (0, 9000, 60, 30),
    }
    frames = {
        n: Frame(time, [(one, other) if up else (other, one)], 2**32 - 10 + seq, length, capfile.ACK)
        for n, (up, time, seq, length) in frames.items()
    }
    return Facts(12, 0, frames, 'made up')


def good_answer():
    """A small right answer and the facts to it: one connection with setup, two exchanges, an omitted one, gaps."""
    nagle, think = finding('nagle_delayed_ack', 'T', 3000, 'client'), finding('server_think', 'A', 2400, 'server')
    answer = {
        'tool': 'tcpwhy',
        'version': '0',
        'schema': 1,
        'connections': [connection(nagle, think)],
        'findings': [nagle, think],
        'summary': {'connections_omitted': 0},
        'capture': {
            'files': ['x'],
            'packets': 12,
            'tcp_packets': 11,
            'start': '',
            'duration_ns': 9000,
            'connections': 1,
            'warnings': [],
        },
    }
    return answer, packets()
