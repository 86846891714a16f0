#!/usr/bin/env python3
"""One source of figures: text, JSON, page, terminal view, SVG and comments of 20 captures, every figure compared.

    scripts/one_source.py [--bin PATH] [FILE...]

JSON is first held against itself (what is listed adds up to what is said of the whole), then the other forms
against JSON: the same headline, the same findings in the same order with the same times and shares, all parts of
a bar, all sums.
"""

import argparse
import base64
import decimal
import glob
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

import common

sys.path.insert(0, os.path.join(common.ROOT, 'tests'))
import view_test

MOST = 20
UNITS = {'ns': 1, 'µs': 1_000, 'ms': 1_000_000, 's': 1_000_000_000}


def captures():
    """The bundled ones, those of the lab last, as many as are wanted."""
    found = sorted(glob.glob(os.path.join(common.ROOT, 'captures', '*.pcap*')))
    found += sorted(glob.glob(os.path.join(common.ROOT, 'captures', 'lab', '*', '*.pcap*')))
    return found


def duration(ns):
    """As the program writes it: three digits and a unit."""
    if ns < 1_000:
        return f'{ns} ns'
    unit, per = ('µs', 1_000) if ns < 999_500 else ('ms', 1_000_000) if ns < 999_500_000 else ('s', 1_000_000_000)
    value = ns / per
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f'{value:.{digits}f} {unit}'


def little(ns):
    """As in lists: below a microsecond nothing is said to the nanosecond."""
    return '<1 µs' if ns < 1_000 else duration(ns)


def percent(share):
    p = share * 100
    return '0 %' if p <= 0 else '<0.1 %' if p < 0.1 else f'{p:.1f} %' if p < 0.95 else f'{p:.0f} %'


def same_percent(said, share):
    """JSON has six digits: at the edge of a rounding either neighbour is right."""
    return said in (percent(share - 6e-7), percent(share), percent(share + 6e-7))


class Capture:
    def __init__(self, binary, path):
        self.binary, self.path, self.wrong, self.compared = binary, path, [], 0
        self.document, _ = common.explain(binary, path, '--exchanges', 'all')
        self.summary = self.document and self.document['summary']

    def run(self, *words):
        env = {k: v for k, v in os.environ.items() if k not in ('COLUMNS', 'CLICOLOR_FORCE')}
        done = subprocess.run(
            [self.binary, 'explain', self.path, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(env, NO_COLOR='1'),
            check=False,
        )
        return done.stdout.decode('utf8')

    def same(self, what, ours, theirs):
        self.compared += 1
        if ours != theirs:
            self.wrong.append(f'{what}: {ours!r}, but {theirs!r}')

    def listed(self):
        """The findings that all forms list, in their order."""
        return [f for f in self.ranked() if not f['minor']]

    def minor(self):
        return [f for f in self.ranked() if f['minor']]

    def ranked(self):
        """By the time of requests; the document ranks by all the time lost."""
        held = [f for f in self.document['findings'] if f['requests_ns'] > 0]
        return sorted(held, key=lambda f: -f['requests_ns'])

    def itself(self):
        """What is listed adds up to what is said of the whole."""
        s, document = self.summary, self.document
        legs = [v for v in s['servers'] if v['within']]
        inner = sum(v['request_ns'] for v in legs)
        outer = [v for v in s['servers'] if not v['within']]
        self.same('requests of servers', sum(v['requests'] for v in outer), s['requests'])
        self.same('time of servers', sum(v['request_ns'] for v in outer), s['request_ns'])
        self.same('idle time', sum(v['idle_ns'] for v in s['servers']), s['idle_ns'])
        self.same('causes', sum(c['requests_ns'] for c in s['causes']), s['request_ns'])
        self.same('owners', sum(s['owners'].values()), s['request_ns'])
        self.same('idle by cause', sum(c['idle_ns'] for c in s['causes']), s['idle_ns'])
        budget, gaps = {}, {}
        for c in document['connections']:
            for total, part in ((budget, c['budget']), (gaps, c['gap_budget'])):
                for cause, ns in part.items():
                    total[cause] = total.get(cause, 0) + ns
        found = {}
        for f in document['findings']:
            if common.CAUSES[f['cause']]['kind'] == 'span':
                found.setdefault(f['cause'], []).append(f)
        for c in s['causes']:
            cause, twice = c['cause'], inner if c['cause'] == 'server_think' else 0
            owner = common.CAUSES[cause]['owner']
            self.same(f'{cause}: owner', c['owner'], owner)
            self.same(f'{cause}: of connections', budget.get(cause, 0) - twice, c['requests_ns'])
            self.same(f'{cause}: gaps', gaps.get(cause, 0), c['idle_ns'] + c['after_last_byte_ns'])
            for key in ('requests_ns', 'idle_ns', 'after_last_byte_ns'):
                self.same(f'{cause}: {key} of findings', sum(f[key] for f in found.get(cause, [])), c[key])
        self.same('causes without findings', sorted(found), sorted(c['cause'] for c in s['causes']))
        order = [-f['lost_ns'] for f in document['findings']]
        self.same('order of findings', order, sorted(order))
        for v in s['servers']:
            self.same(f'{v["server"]}: causes', sum(v['causes'].values()), v['request_ns'])
            self.same(f'{v["server"]}: counts', sum(b['requests'] for b in v['distribution']), v['requests'])
            self.quantiles(v, [c for c in document['connections'] if c['server'] == v['server']])

    def quantiles(self, server, connections):
        """From the exchanges themselves that took time: nearest rank, right to a thousandth."""
        took = sorted(x['end_ns'] - x['start_ns'] for c in connections for x in c['exchanges'])
        self.same(f'{server["server"]}: exchanges', len(took), server['requests'])
        timed = [t for t in took if t > 0]
        self.same(f'{server["server"]}: timed', len(timed), server['timed'])
        seen = timed or took
        for key, p in (('median_ns', 50), ('p95_ns', 95), ('max_ns', 100)):
            if not took:
                self.same(f'{server["server"]}: {key}', server[key], None)
                continue
            exact = seen[max(1, -(-len(seen) * p // 100)) - 1]
            near = abs(server[key] - exact) <= exact / 1000 + 1
            self.same(f'{server["server"]}: {key} {server[key]} of {exact}', near, True)
        for band in server['distribution']:
            inside = [t for t in took if band['from_ns'] <= t < band['to_ns']]
            said = [band['requests'], sum(band['causes'].values())]
            self.same(f'{server["server"]}: band', [len(inside), sum(inside)], said)

    def text(self):
        """What is printed without a terminal, at 80 columns."""
        said = self.run()
        s = self.summary
        head, _, rest = said.partition('\n\n')
        self.same('text: headline', ' '.join(head.split()), s['headline'])
        # a command is not broken; a clock that was set moves times beyond what their column is for
        lines = [
            row for row in said.splitlines() if 'tcpwhy explain' not in row and not re.search(r'\d{7}(\.\d{6})? s', row)
        ]
        odd = self.document['capture']['duration_ns'] > 1_000_000 * UNITS['s']
        self.same('text: columns', [] if odd else [row for row in lines if len(row) > 80], [])
        headings = re.findall(r'^  ( *[0-9.]+ [nµm]?s) +(<?[0-9.]+ %)  (.+)$', rest, re.M)
        self.same('text: findings', [h[2] for h in headings], [f['title'] for f in self.listed()][: len(headings)])
        for (time, share, title), f in zip(headings, self.listed()):
            self.same(f'text: time of {title}', time.strip(), duration(f['requests_ns']))
            self.same(f'text: share of {title}', same_percent(share, f['share_of_requests']), True)
        # beyond --top findings are named with the small ones
        small = self.listed()[len(headings) :] + self.minor()
        self.same('text: smaller', self.paragraph(rest, 'smaller'), [little(f['requests_ns']) for f in small])
        for head, key in (
            ('idle between requests' if s['requests'] > 1 else 'idle at other times', 'idle_ns'),
            ('after the last byte, when nobody waited', 'after_last_byte_ns'),
        ):
            parts = sorted((-c[key], list(common.CAUSES).index(c['cause'])) for c in s['causes'] if c[key] > 0)
            self.same(f'text: {head}', self.paragraph(rest, head), [little(-ns) for ns, _ in parts])
        bar = re.search(r'^  [█▓▒░·]+\n((?:  [█▓▒░·r].*\n)+)', rest, re.M)
        if bar:
            named = re.findall(r'[█▓▒░·] (\w+) (<?[0-9.]+ %)', bar[1])
            causes = [c for c in s['causes'] if c['share_of_requests'] >= 0.01]
            self.same('text: bar', [n[0] for n in named], [c['cause'] for c in causes])
            for (cause, share), c in zip(named, causes):
                self.same(f'text: bar: {cause}', same_percent(share, c['share_of_requests']), True)
        for v in s['servers'] if len(s['servers']) > 1 else []:
            row = re.search(rf'^ *└? ?{re.escape(v["server"])} +(\d+) +(.+?)  +(.+?)  +(.+?)  ', rest, re.M)
            if row:
                times = [duration(v[k]) if v[k] else '-' for k in ('median_ns', 'p95_ns', 'max_ns')]
                self.same(f'text: {v["server"]}', list(row.groups()), [str(v['requests']), *times])

    @staticmethod
    def paragraph(text, head):
        """The times in the paragraph with this head."""
        found = re.search(rf'^  {re.escape(head)}: (.*?)\n\n', text + '\n\n', re.M | re.S)
        words = ' '.join(found[1].split()) if found else ''
        return re.findall(r'<?[0-9.]+ (?:ns|µs|ms|s)\b', words)

    def page(self, folder):
        """The page: the answer in it is that of --json; what stands there without a script is the same, too."""
        path = os.path.join(folder, 'page.html')
        self.run('--quiet', '--html', path)
        with open(path, encoding='utf8') as f:
            page = f.read()
        block = re.search(r'<script type="text/plain" id="d-report">(.*?)</script>', page, re.S)[1]
        inside = json.loads(zlib.decompress(base64.b64decode(block), -15))
        document, _ = common.explain(self.binary, self.path)
        self.same('page: summary', inside['summary'], document['summary'])
        self.same('page: findings', inside['findings'], document['findings'])
        self.same('page: connections', inside['connections'], document['connections'])
        self.same('page: headline', html.unescape(re.search(r'<h1>(.*?)</h1>', page)[1]), self.summary['headline'])
        rows = re.findall(r'<tr><td>[^<]*<code>(\w+)</code><td>[^<]*<td>([^<]*)<td>([^<]*)<td>([^<]*)</tr>', page)
        self.same('page: causes', [r[0] for r in rows], [c['cause'] for c in self.summary['causes']])
        for (cause, time, share, idle), c in zip(rows, self.summary['causes']):
            self.same(f'page: {cause}', [time, idle], [duration(c['requests_ns']), duration(c['idle_ns'])])
            self.same(f'page: share of {cause}', same_percent(html.unescape(share), c['share_of_requests']), True)
        cards = re.findall(r'<li><h3>(.*?) <small>([^·]*) · ([^·]*) ·', page)
        self.same('page: cards', [html.unescape(c[0]) for c in cards], [f['title'] for f in self.listed()])
        for (title, time, share), f in zip(cards, self.listed()):
            self.same(f'page: {title}', time, duration(f['requests_ns']))
            self.same(f'page: share of {title}', same_percent(html.unescape(share), f['share_of_requests']), True)

    def figures(self, folder):
        """The ladder of the slowest exchange: the times of its spans."""
        slowest = self.summary['slowest'][:1]
        for slow in slowest:
            c = next(c for c in self.document['connections'] if c['id'] == slow['connection'])
            x = next(x for x in c['exchanges'] if x['id'] == slow['exchange'])
            self.same('slowest', slow['duration_ns'], x['end_ns'] - x['start_ns'])
            path = os.path.join(folder, 'ladder.svg')
            self.run('--quiet', '--connection', str(c['id']), '--exchange', str(x['id']), '--svg', path)
            with open(path, encoding='utf8') as f:
                drawn = html.unescape(re.sub(r'<[^>]+>', ' ', f.read()))
            for span in x['spans']:
                time = duration(span['end_ns'] - span['start_ns'])
                named = span['cause'] in drawn and time in drawn
                # a stretch without room for words has none
                if span['end_ns'] - span['start_ns'] > 0.1 * slow['duration_ns']:
                    self.same(f'svg: {span["cause"]} {time}', named, True)

    def comments(self, folder):
        """Comments beside packets name spans and findings of the document, with their times."""
        path = os.path.join(folder, 'notes.pcapng')
        self.run('--quiet', '--exchanges', 'all', '--annotate', path)
        with open(path, 'rb') as f:
            text = f.read().decode('utf8', 'replace')
        spans = {}
        for c in self.document['connections']:
            parts = [c['setup']] if c['setup'] else []
            for part in parts + c['exchanges'] + c['gaps']:
                for span in part['spans']:
                    spans[span['id']] = span
        findings = {f['id']: f for f in self.document['findings']}
        said = re.findall(r'tcpwhy: cause=(\w+) ms=([0-9.]+) [^\n]*?span=([0-9.sg]+)(?: finding=(f\d+))?', text)
        for cause, time, span, finding in set(said):
            known = spans.get(span)
            ours = known and (known['cause'], known['end_ns'] - known['start_ns'])
            self.same(f'comment: {span}', ours, (cause, int(decimal.Decimal(time) * 1_000_000)))
            if finding:
                self.same(f'comment: {finding}', findings[finding]['cause'], cause)

    def view(self):
        """The first screen of the terminal view."""
        tmux = view_test.Tmux()
        size = ['-x', '160', '-y', '60']
        tmux.run('-f', '/dev/null', 'new-session', '-d', '-s', 'v', *size, 'env PS1=ready: bash --norc')
        try:
            tmux.until('ready:')
            tmux.keys(f"clear; '{os.path.abspath(self.binary)}' view '{os.path.abspath(self.path)}'", 'Enter')
            screen = tmux.until('q: quit')
        finally:
            tmux.run('kill-server')
        self.same('view: headline', self.summary['headline'] in ' '.join(screen.split()), True)
        for f in self.listed()[:10]:
            if f['requests_ns'] > 1_000_000 * UNITS['s']:
                # a clock that was set: too long for its column
                continue
            # a long title is cut at the edge of its column
            rows = re.findall(rf'([0-9.]+ [nµm]?s) +(<?[0-9.]+ %) +{re.escape(f["title"][:24])}', screen)
            time, share = duration(f['requests_ns']), f['share_of_requests']
            right = [r for r in rows if r[0] == time and same_percent(r[1], share)]
            self.same(f'view: {f["title"]} among {rows}', bool(right), True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    terminal = shutil.which('tmux') is not None
    captures_, figures, failed = 0, 0, 0
    for path in args.files or captures():
        capture = Capture(args.bin, path)
        if not capture.document or not capture.document['connections']:
            continue
        capture.itself()
        capture.text()
        with tempfile.TemporaryDirectory() as folder:
            capture.page(folder)
            capture.figures(folder)
            capture.comments(folder)
        if terminal:
            capture.view()
        captures_, figures, failed = captures_ + 1, figures + capture.compared, failed + bool(capture.wrong)
        for line in capture.wrong[:10]:
            print(f'{common.shown(path)}: {line}')
        if captures_ == MOST and not args.files:
            break
    without = '' if terminal else ', without the terminal view (no tmux)'
    print(f'one source: {figures} figures of {captures_} captures compared{without}, {failed} captures differ')
    return 1 if failed or figures == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
