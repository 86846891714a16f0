#!/usr/bin/env python3
"""Predicted beside measured as people ask it: "80 ms away, 30 KB of JSON, a fresh TLS connection" against nginx and curl.

nginx serves a document of 30,000 bytes over TLS 1.3 behind the lab's link (root), curl fetches it so many times, each time on a
connection of its own. What the processors need for work and for cryptography is no question for a model of TCP: it is taken
from the captures of the same runs, as `explain` tells it, and given to `predict`. Everything else `predict` has to know by
itself. Measured is what the capture at the client shows from the SYN to the last byte of the response.

Fails if the median of the runs and the prediction differ by more than the bound. docs/model.md has the figures of the last run.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import common

RTT = '80ms'
BODY = 30_000
BOUND = 5.0
LEAST = 20

NGINX = """
daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/error.log; worker_processes 1;
events {{ }}
http {{
  access_log off; client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir}; uwsgi_temp_path {dir};
  scgi_temp_path {dir};
  server {{
    listen 8443 ssl; ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem; ssl_protocols TLSv1.3;
    root {dir}; default_type application/json;
  }}
}}
"""


def prepare(folder):
    """A certificate, a document and a configuration."""
    subject = ['-subj', '/CN=10.77.0.2', '-addext', 'subjectAltName=IP:10.77.0.2']
    files = ['-keyout', f'{folder}/key.pem', '-out', f'{folder}/cert.pem']
    command = ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
    row = '{"id": 1234567, "name": "a row of the answer"}, '
    with open(f'{folder}/rows.json', 'w', encoding='utf8') as f:
        f.write(('[' + row * BODY)[: BODY - 1] + ']')
    with open(f'{folder}/nginx.conf', 'w', encoding='utf8') as f:
        f.write(NGINX.format(dir=folder))


def measure(binary, folder, runs):
    """The connections of so many fetches, from the client's tap."""
    fetch = 'curl -s --http1.1 --cacert cert.pem -o /dev/null https://10.77.0.2:8443/rows.json'
    kept = os.path.join(folder, 'kept')
    # Between two fetches both ends come to rest.
    script = f'cd {folder} && for i in $(seq {runs}); do {fetch} || exit 1; sleep 0.2; done'
    server = f'nginx -p {folder} -c {folder}/nginx.conf'
    command = [binary, 'lab', 'link', '--rtt', RTT, '--server', server, '--keep', kept, '--', 'sh', '-c', script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f'the link: {done.stderr.strip() or done.returncode}')
    answer, _ = common.explain(binary, os.path.join(kept, 'cap.client.pcap'), '--exchanges', 'all')
    return [c for c in answer['connections'] if c['exchanges'] and c['exchanges'][0]['response_bytes'] > BODY]


def spent(spans, cause):
    return sum(s['end_ns'] - s['start_ns'] for s in spans if s['cause'] == cause)


def figures(c):
    """Of one fetch in ms: the whole, and what the processors had of it: the server's and the client's cryptography, and the
    server's work on the request."""
    x = c['exchanges'][0]
    setup, before = c['setup']['spans'], [s for g in c['gaps'] for s in g['spans'] if g['end_ns'] <= x['start_ns']]
    client = spent(setup, 'client_think') + spent(before, 'client_think')
    work = spent(x['spans'], 'server_think') + spent(x['spans'], 'sender_pause')
    times = (x['with_setup_ns'], spent(setup, 'server_think'), client, work)
    return [t / 1e6 for t in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--runs', type=int, default=24)
    args = parser.parse_args()
    missing = [tool for tool in ('nginx', 'curl', 'openssl') if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        print(f'SKIP: needs {", ".join(missing) or "root"}')
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        prepare(folder)
        rows = [figures(c) for c in measure(args.bin, folder, args.runs)]
    if len(rows) < LEAST:
        sys.exit(f'only {len(rows)} of {args.runs} fetches are in the capture: at least {LEAST} are needed')
    measured = statistics.median(row[0] for row in rows)
    # On a busy machine now one and now another of the three takes long: the median of their sum, shared out as they
    # are on average.
    total = statistics.median(sum(row[1:]) for row in rows)
    means = [statistics.mean(row[k] for row in rows) for k in (1, 2, 3)]
    processors = [total * mean / max(sum(means), 1e-9) for mean in means]
    crypto_server, crypto_client, work = (f'{ms:.3f}ms' for ms in processors)
    asked = ['--rtt', RTT, '--response', '30KB', '--tls']
    given = ['--tls-time', f'{crypto_server},{crypto_client}', '--server-time', work]
    predicted = []
    for more in ([], given):
        done = subprocess.run(
            [args.bin, 'predict', *asked, *more, '--json'], capture_output=True, text=True, check=True
        )
        predicted.append(json.loads(done.stdout)['total_ns'] / 1e6)
    error = (predicted[1] / measured - 1) * 100
    whole = sorted(row[0] for row in rows)
    print(f'measured   median {measured:.1f} ms of {len(rows)} fetches, {whole[0]:.1f} to {whole[-1]:.1f} ms')
    print(
        f'processors {crypto_server} of cryptography at the server and {crypto_client} at the client, '
        f'{work} of work at the server (median of their sum, from the capture)'
    )
    print(
        f'predicted  {predicted[1]:.1f} ms with these ({predicted[0]:.1f} ms without): {error:+.1f} %, bound {BOUND:g} %'
    )
    print(f'           tcpwhy predict {" ".join(asked + given)}')
    sys.exit(abs(error) > BOUND)


if __name__ == '__main__':
    main()
