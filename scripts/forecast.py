#!/usr/bin/env python3
"""What `tcpwhy run` says a program would take 40 ms away, beside what it takes there.

Each of two dozen programs or settings runs without distance (the forecast of the run that took the median time counts) and with
`--rtt 40ms`, some times each, without privileges: as root, the user is changed to `nobody` first. Compared is the whole run,
which is what the user is told. Where the forecast is a range (some requests may have waited for others on another connection,
and nothing shows whether they did) the nearer end counts for the error, and the range is shown.

Needs nginx, redis-tools, haproxy, apache2-utils, mariadb-server, PostgreSQL with pgbench, git, wget, curl, Go, Node and a JDK;
rows whose program is missing are named and left out. docs/run.md has the figures of the last run. `make forecast`
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import common
import forecast_unseen

RTT_MS = 40
NOBODY = 65534
# so many tries for each run that the machine does not disturb
AGAIN = 4
# bounds of the comparison: median and 95th percentile of the error, in percent of the time measured
MEDIAN, P95 = 5.0, 15.0
EXAMPLES = os.path.join(common.ROOT, 'examples', 'forecast')

# what every row may use; ports are free because each run has a network of its own
PRELUDE = """
set -eu
up() { until ss -Hltn "sport = :$1" | grep -q .; do sleep 0.02; done; }
nginx_up() { nginx -p . -c nginx.conf & up 8080; }
"""

NGINX = """
daemon off; master_process off; pid nginx.pid; error_log error.log; worker_processes 1;
events {}
http {
  access_log off; client_body_temp_path .; proxy_temp_path .; fastcgi_temp_path .; uwsgi_temp_path .; scgi_temp_path .;
  include /etc/nginx/mime.types;
  server { listen 8080; root site; }
  server { listen 8443 ssl; ssl_certificate cert.pem; ssl_certificate_key key.pem; root site; }
}
"""

HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend f
  bind 127.0.0.1:8000
  default_backend b
backend b
  server s 127.0.0.1:8080
"""

POSTGRES = (
    'PATH=$PATH:$(echo /usr/lib/postgresql/*/bin); postgres -D pg -p 5433 -h 127.0.0.1 -k . >/dev/null 2>&1 & up 5433; '
)
MARIADB = (
    'mariadbd --no-defaults --datadir=$PWD/my --socket=$PWD/my.sock --port=3307 --bind-address=127.0.0.1 '
    '--skip-name-resolve >/dev/null 2>&1 & up 3307; '
)

# what is made once, before anything is measured, by the user who runs the rows: what for, and how
MADE = [
    ('openssl', 'openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=forecast'),
    ('go', 'GOCACHE=$PWD/cache go build -o rpc rpc.go; rm -rf cache'),
    ('javac', 'javac Calls.java'),
    ('psql', 'initdb -D pg -A trust -U me; chmod 700 pg'),
    ('mariadbd', 'mysql_install_db --no-defaults --datadir=$PWD/my --auth-root-authentication-method=normal'),
    (
        'git',
        'git init -q --bare r.git; git init -q w; cd w; for i in $(seq 30); do head -c 20000 /dev/urandom > f$i; done; '
        'git add .; git -c user.name=a -c user.email=a@b commit -q -m x; git push -q ../r.git HEAD:main; cd ..; rm -rf w; '
        'git --git-dir r.git symbolic-ref HEAD refs/heads/main',
    ),
]

# name, commands that must be there, what is done
ROWS = [
    (
        'curl: 30 files, one connection',
        'nginx curl',
        'nginx_up; curl -s -o /dev/null "http://127.0.0.1:8080/small?[1-30]"',
    ),
    (
        'curl: 15 times, connections of their own',
        'nginx curl',
        'nginx_up; for i in $(seq 15); do curl -s -o /dev/null http://127.0.0.1:8080/small; done',
    ),
    (
        'curl: 8 times by TLS',
        'nginx curl openssl',
        'nginx_up; for i in $(seq 8); do curl -sk -o /dev/null https://127.0.0.1:8443/small; done',
    ),
    ('curl: 5 MB', 'nginx curl', 'nginx_up; curl -s -o /dev/null http://127.0.0.1:8080/large'),
    ('curl: 200 KB, ten times', 'nginx curl', 'nginx_up; curl -s -o /dev/null "http://127.0.0.1:8080/middle?[1-10]"'),
    ('ab: one at a time', 'nginx ab', 'nginx_up; ab -q -c 1 -n 20 http://127.0.0.1:8080/small >/dev/null'),
    ('ab: four kept connections', 'nginx ab', 'nginx_up; ab -q -k -c 4 -n 80 http://127.0.0.1:8080/small >/dev/null'),
    ('wget: a small site', 'nginx wget', 'nginx_up; wget -q -r -l 1 -nd -P got http://127.0.0.1:8080/index.html'),
    (
        'haproxy before nginx',
        'haproxy nginx curl',
        'nginx_up; haproxy -f haproxy.cfg & up 8000; curl -s -o /dev/null "http://127.0.0.1:8000/small?[1-12]"',
    ),
    (
        'redis-benchmark: one client',
        'redis-server redis-benchmark',
        'redis-server --port 6380 --save "" >/dev/null & up 6380; redis-benchmark -p 6380 -c 1 -n 25 -t set,get -q >/dev/null',
    ),
    (
        'redis-benchmark: pipelined',
        'redis-server redis-benchmark',
        'redis-server --port 6380 --save "" >/dev/null & up 6380; '
        'redis-benchmark -p 6380 -c 5 -P 8 -n 400 -t set,get -q >/dev/null',
    ),
    (
        'mariadb: 20 statements',
        'mariadbd mariadb mysql_install_db',
        MARIADB + 'for i in $(seq 20); do echo "select repeat(\'x\', $i * 100);"; done | '
        'mariadb --no-defaults -h 127.0.0.1 -P 3307 -u root >/dev/null',
    ),
    (
        'pgbench: 10 transactions',
        'pgbench',
        POSTGRES + 'export PGHOST=127.0.0.1 PGPORT=5433 PGUSER=me; '
        'pgbench -i -q postgres >/dev/null 2>&1; pgbench -c 1 -t 10 postgres >/dev/null 2>&1',
    ),
    (
        'psql: 2 MB of rows',
        'psql',
        POSTGRES + 'psql -h 127.0.0.1 -p 5433 -U me -c '
        '"copy (select i, repeat(\'y\', 190) from generate_series(1, 10000) i) to stdout" postgres >/dev/null',
    ),
    (
        'pg_dump',
        'pg_dump',
        POSTGRES + 'pg_dump -h 127.0.0.1 -p 5433 -U me postgres >/dev/null',
    ),
    (
        'git: clone',
        'git',
        'git daemon --reuseaddr --export-all --base-path=. --port=9418 & up 9418; git clone -q git://127.0.0.1/r.git got',
    ),
    ('Python: xmlrpc', 'python3', '/usr/bin/python3 calls.py xmlrpc'),
    ('Python: bodies of 100 KB', 'python3', '/usr/bin/python3 calls.py post'),
    ('Python: a pool of four', 'python3', '/usr/bin/python3 calls.py pool'),
    ('Python: echo', 'python3', '/usr/bin/python3 calls.py echo'),
    ('Go: net/rpc', 'go', './rpc'),
    ('Java: java.net.http', 'java', 'java -cp . Calls'),
    ('Node: fetch in series', 'node', 'node fetch.mjs series'),
    ('Node: five at a time', 'node', 'node fetch.mjs parallel'),
    ('Node: bodies of 1 MB', 'node', 'node fetch.mjs upload'),
]


def prepare(folder):
    """What the rows read: pages, a certificate, programs that are compiled before anything is measured."""
    site = os.path.join(folder, 'site')
    os.makedirs(site)
    for name, size in (('small', 2_000), ('middle', 200_000), ('large', 5_000_000)):
        with open(os.path.join(site, name), 'wb') as f:
            f.write(b'x' * size)
    for i in range(12):
        with open(os.path.join(site, f'page{i}.html'), 'w', encoding='utf8') as f:
            f.write(f'<p>{i}</p>' * 500)
    with open(os.path.join(site, 'index.html'), 'w', encoding='utf8') as f:
        f.write(''.join(f'<a href="page{i}.html">{i}</a>' for i in range(12)))
    for name, text in (('nginx.conf', NGINX), ('haproxy.cfg', HAPROXY), *forecast_unseen.FILES.items()):
        with open(os.path.join(folder, name), 'w', encoding='utf8') as f:
            f.write(text)
    for name in ('calls.py', 'fetch.mjs', 'rpc.go', 'Calls.java'):
        shutil.copy(os.path.join(EXAMPLES, name), folder)
    hand_over(folder)
    for need, commands in MADE + forecast_unseen.MADE:
        if shutil.which(need):
            done = subprocess.run(
                as_nobody(['bash', '-c', 'set -eu; ' + commands]), cwd=folder, env=home(folder), capture_output=True
            )
            if done.returncode:
                print(f'{need}: {done.stderr.decode("utf8", "replace")[-300:]}')


def home(folder):
    """The environment of a user who lives in this folder."""
    return {**os.environ, 'HOME': folder, 'TMPDIR': folder, 'GOFLAGS': '-mod=mod'}


def hand_over(folder):
    """To the user who will run what is in it."""
    if os.geteuid() == 0:
        subprocess.run(['chown', '-R', f'{NOBODY}:{NOBODY}', folder], check=True)


def as_nobody(command):
    """This command without privileges."""
    if os.geteuid() == 0:
        return ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', *command]
    return command


def run(binary, folder, name, commands, options):
    """The `run` part of the JSON of one run in a fresh copy of the folder."""
    work = tempfile.mkdtemp(dir=os.path.dirname(folder))
    subprocess.run(['cp', '-a', f'{folder}/.', work], check=True)
    command = as_nobody(
        [binary, 'run', '--json', '-o', 'answer.json', *options, '--', 'bash', '-c', PRELUDE + commands]
    )
    done = subprocess.run(
        command, cwd=work, env=home(work), stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
    )
    if done.returncode:
        raise common.Failed(f'{name}: {done.returncode}: {done.stderr.decode("utf8", "replace")[-400:]}')
    with open(os.path.join(work, 'answer.json'), encoding='utf8') as f:
        answer = json.load(f)['run']
    shutil.rmtree(work)
    return answer


def compared(binary, folder, name, commands, times):
    """Seconds without distance, as foreseen (from, to), as measured. What says of itself that the machine disturbed it, because
    packets were delivered late, is done again, and is nothing to compare with.
    """
    near = [run(binary, folder, name, commands, []) for _ in range(times)]
    far = []
    for _ in range(AGAIN * times):
        answer = run(binary, folder, name, commands, ['--rtt', f'{RTT_MS}ms'])
        far += [] if answer['link']['disturbed'] else [answer]
        if len(far) == times:
            break
    if not far:
        raise common.Failed(f'{name}: disturbed: packets were delivered late in each of {AGAIN * times} runs')
    took = lambda r: r['runs'][0]['duration_ns'] / 1e9  # noqa: E731
    median = sorted(near, key=took)[times // 2]
    cost = next(c for c in median['at_a_distance']['costs'] if c['rtt_ns'] == RTT_MS * 1_000_000)
    foreseen = [took(median) + cost[k] / 1e9 for k in ('more_least_ns', 'more_most_ns')]
    return took(median), foreseen, statistics.median(map(took, far))


def score(binary, folder, which, rows, args):
    """Prints a set of programs, row by row and as a whole; whether it is beyond a bound."""
    errors, wide, wrong, missing = [], [], 0, []
    print(f'{f"program ({which} before)":42} {"near":>8} {"foreseen":>17} {f"at {RTT_MS} ms":>9} {"error":>7}')
    for name, needs, commands in rows:
        if args.only not in name:
            continue
        lacking = [n for n in needs.split() if not shutil.which(n)]
        if lacking:
            missing.append(f'{name} ({", ".join(lacking)})')
            continue
        try:
            near, (least, most), far = compared(binary, folder, name, commands, args.times)
        except (common.Failed, subprocess.TimeoutExpired) as e:
            missing.append(str(e))
            continue
        error = 100 * (max(least - far, 0) + min(most - far, 0)) / far
        direction = (most > near * 1.02) == (far > near * 1.02)
        wrong += not direction
        errors.append(abs(error))
        is_range = most - least >= 0.01 * most
        if is_range:
            wide.append(100 * (most - least) / far)
        span = f'{least:.3f} to {most:.3f}' if is_range else f'{least:.3f}'
        print(
            f'{name:42} {near:6.3f} s {span:>15} s {far:7.3f} s {error:+6.1f} %' + ('' if direction else '  WRONG WAY'),
            flush=True,
        )
    for what in missing:
        print(f'not compared: {what}')
    errors.sort()
    if not errors:
        print(f'{which}: nothing was compared')
        return True
    p95 = errors[min(len(errors) - 1, round(0.95 * len(errors)) - 1)]
    ranges = f', {len(wide)} ranges, {min(wide):.0f} to {max(wide):.0f} % wide' if wide else ''
    print(
        f'{which}: {len(errors)} programs: median error {statistics.median(errors):.1f} % (bound {MEDIAN:.0f}), '
        f'95th percentile {p95:.1f} % (bound {P95:.0f}), worst {errors[-1]:.1f} %, wrong way {wrong}{ranges}',
        flush=True,
    )
    return statistics.median(errors) > MEDIAN or p95 > P95 or wrong > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default=common.BINARY)
    parser.add_argument('--times', type=int, default=3)
    parser.add_argument('--only', default='', help='part of a name')
    parser.add_argument('--set', choices=['seen', 'unseen', 'both'], default='both', help='which programs')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder, binary = os.path.join(top, 'all'), os.path.join(top, 'tcpwhy')
        os.makedirs(folder)
        shutil.copy(args.bin, binary)
        prepare(folder)
        os.environ['PATH'] += os.pathsep + os.pathsep.join(['/usr/sbin', *glob.glob('/usr/lib/postgresql/*/bin')])
        sets = [('seen', ROWS), ('unseen', forecast_unseen.ROWS)]
        beyond = [score(binary, folder, which, rows, args) for which, rows in sets if args.set in (which, 'both')]
    sys.exit(any(beyond))


if __name__ == '__main__':
    main()
