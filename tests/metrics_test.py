#!/usr/bin/env python3
"""`tcpwhy watch --metrics` as Debian's Prometheus reads it: the target is up, every query of docs/grafana.json answers, and what
a program beside it waits for is what the metrics say. tests/metrics_test.py --bin PATH
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DASHBOARD = os.path.join(ROOT, 'docs', 'grafana.json')
# long enough for a machine that does everything else first
PATIENCE = 90

# requests in two writes each, and a writer whose reader sleeps
LOAD = """
import socket, threading, time
def serve(c):
    while c.recv(204, socket.MSG_WAITALL):
        c.sendall(b'a' * 100)
def slow(c):
    while c.recv(1 << 16):
        time.sleep(0.05)
def pair(what):
    listener = socket.create_server(('127.0.0.1', 0))
    c = socket.create_connection(listener.getsockname())
    threading.Thread(target=what, args=[listener.accept()[0]], daemon=True).start()
    return c
def push(c):
    while True:
        c.sendall(b'x' * (1 << 20))
threading.Thread(target=push, args=[pair(slow)], daemon=True).start()
c = pair(serve)
while True:
    c.send(b'h' * 4); c.send(b'b' * 200)
    c.recv(100, socket.MSG_WAITALL)
"""


def get(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode(), answer.headers


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def until(what, meaning):
    """Asks again until there is an answer."""
    end, last = time.monotonic() + PATIENCE, None
    while time.monotonic() < end:
        try:
            last = what()
            if last:
                return last
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            last = error
        time.sleep(0.3)
    sys.exit(f'{meaning}: not within {PATIENCE} s; last: {last}')


def queries():
    """Every query of the dashboard, as Grafana would send it."""
    with open(DASHBOARD, encoding='utf8') as f:
        dashboard = json.load(f)
    for panel in dashboard['panels']:
        for target in panel['targets']:
            text = target['expr'].replace('$__rate_interval', '30s').replace('$instance', '.*')
            if '$' in text:
                sys.exit(f'{panel["title"]}: a variable that is not known: {text}')
            yield panel['title'], text
    for variable in dashboard['templating']['list']:
        if variable['type'] == 'query':
            metric, label = re.fullmatch(r'label_values\((\w+), (\w+)\)', variable['query']).groups()
            yield variable['label'], f'count by ({label}) ({metric})'


def check(base, port):
    """What Prometheus at `base` says of the program at `port`."""

    def ask(query):
        answer = json.loads(get(f'{base}/api/v1/query?' + urllib.parse.urlencode({'query': query}))[0])
        return answer['data']['result']

    until(lambda: ask('up{job="tcpwhy"} == 1'), 'the target is up')
    # two scrapes, so that there is a rate
    until(lambda: float(ask('count_over_time(tcpwhy_samples_total[30s])')[0]['value'][1]) >= 3, 'three scrapes')
    empty = []
    for title, query in queries():
        answer = until(lambda query=query: ask(query), f'{title}: {query}')
        if not all(float(row['value'][1]) >= 0 for row in answer):
            empty.append(f'{title}: {query}: {answer}')
    if empty:
        sys.exit('\n'.join(empty))
    lost = 'sum by (cause) (rate(tcpwhy_connection_time_seconds_total{class="T",program="python3"}[30s])) > 0.2'
    wanted = {'nagle_delayed_ack', 'slow_reader'}
    until(lambda: wanted <= {row['metric']['cause'] for row in ask(lost)}, f'the causes {wanted}')
    kinds = json.loads(get(f'{base}/api/v1/targets/metadata')[0])['data']
    kinds = {row['metric']: (row['type'], bool(row['help'])) for row in kinds}
    text, headers = get(f'http://127.0.0.1:{port}/metrics')
    if not headers['Content-Type'].startswith('application/openmetrics-text'):
        sys.exit(f'no OpenMetrics: {headers["Content-Type"]}')
    unknown = [name for name in kinds if name.startswith('tcpwhy') and kinds[name][0] == 'unknown']
    if unknown or not all(said for _, said in kinds.values()):
        sys.exit(f'without a type or a sentence: {unknown} {kinds}')
    series = [line for line in text.splitlines() if not line.startswith('#')]
    # whatever connects to whom: no address and no port is a label
    if any(re.search(r'"[0-9.:]*:[0-9]+"', line) for line in series):
        sys.exit('an address in a label')
    for path, header, code in (('/', {}, 404), ('/metrics', {'Host': 'evil.example'}, 403)):
        request = urllib.request.Request(f'http://127.0.0.1:{port}{path}', headers=header)
        try:
            urllib.request.urlopen(request, timeout=20)
            sys.exit(f'{path} {header}: answered')
        except urllib.error.HTTPError as error:
            if error.code != code:
                sys.exit(f'{path} {header}: {error.code}, not {code}')
    return len(series)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bin', required=True)
    binary = os.path.abspath(parser.parse_args().bin)
    if not shutil.which('prometheus'):
        print('prometheus is not installed')
        return 75
    started = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            load = subprocess.Popen([sys.executable, '-c', LOAD], stdin=subprocess.DEVNULL)
            started.append(load)
            command = ['env', '--default-signal=INT', binary, 'watch', '--metrics', '0', '--pid', str(load.pid)]
            watch = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            started.append(watch)
            said = watch.stderr.readline()
            port = int(re.search(r'http://127\.0\.0\.1:(\d+)/metrics', said)[1])
            second = subprocess.run(
                [binary, 'watch', '--metrics', str(port)], capture_output=True, text=True, check=False
            )
            if second.returncode != 3 or 'is taken' not in second.stderr:
                sys.exit(f'a second one on the same port: {second.returncode} {second.stderr}')
            config = os.path.join(folder, 'prometheus.yml')
            with open(config, 'w', encoding='utf8') as f:
                f.write(
                    'global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: tcpwhy\n'
                    f'  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]\n'
                )
            own = free_port()
            with open(os.path.join(folder, 'log'), 'w', encoding='utf8') as log:
                started.append(
                    subprocess.Popen(
                        [
                            'prometheus',
                            f'--config.file={config}',
                            f'--storage.tsdb.path={folder}/data',
                            f'--web.listen-address=127.0.0.1:{own}',
                        ],
                        stdout=log,
                        stderr=log,
                    )
                )
            series = check(f'http://127.0.0.1:{own}', port)
            watch.send_signal(signal.SIGINT)
            if watch.wait(timeout=PATIENCE) != 130:
                sys.exit(f'interrupted, it ended with {watch.returncode}')
            print(f'{len(list(queries()))} queries answered by Prometheus, {series} series')
        finally:
            for process in started:
                process.kill()
                process.wait()
    return 0


if __name__ == '__main__':
    sys.exit(main())
