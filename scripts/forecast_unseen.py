"""Programs and settings for `make forecast` that were chosen after the forecast of `tcpwhy run` was finished, and to which
nothing was tuned: where one is far off, the figure stands in docs/run.md as it is. Whoever changes the forecast because of a row
moves it into `ROWS` of forecast.py.
"""

NGINX = """
daemon off; master_process off; pid nginx2.pid; error_log error2.log; worker_processes 1;
events {}
http {
  access_log off; client_body_temp_path .; proxy_temp_path .; fastcgi_temp_path .; uwsgi_temp_path .; scgi_temp_path .;
  include /etc/nginx/mime.types; client_max_body_size 20m;
  server { listen 8081; location / { proxy_pass http://127.0.0.1:8080; } }
  server { listen 8082; root put; dav_methods PUT; }
  server { listen 8444 ssl http2; ssl_certificate cert.pem; ssl_certificate_key key.pem; root site; }
}
"""

RSYNC = """
use chroot = no
[files]
path = files
"""

STREAMS = """
import asyncio
async def serve(reader, writer):
    while await reader.readexactly(1) != b'.':
        writer.write(bytes(3000))
    writer.close()
async def ask(port, number):
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    for _ in range(12):
        writer.write(b'x')
        await reader.readexactly(3000)
        await asyncio.sleep(0.005 * number)
    writer.write(b'.')
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(ask(port, number) for number in range(5)))
asyncio.run(main())
"""

MAIL = """
import smtplib, socket, threading
listener = socket.create_server(('127.0.0.1', 0))
def serve():
    c = listener.accept()[0]
    f = c.makefile('rb')
    c.sendall(b'220 here\\r\\n')
    for line in f:
        word = line[:4].upper()
        if word == b'DATA':
            c.sendall(b'354 go on\\r\\n')
            while f.readline() not in (b'.\\r\\n', b''): pass
        c.sendall(b'221 bye\\r\\n' if word == b'QUIT' else b'250 ok\\r\\n')
threading.Thread(target=serve, daemon=True).start()
with smtplib.SMTP(*listener.getsockname()) as mail:
    for _ in range(8):
        mail.sendmail('a@b', ['c@d', 'e@f'], 'Subject: x\\r\\n\\r\\n' + 'text\\r\\n' * 500)
"""

TINY = """
use HTTP::Tiny;
my $http = HTTP::Tiny->new;
for (1 .. 12) { die unless $http->get("http://127.0.0.1:8080/small")->{success} }
"""

AGENT = """
const http = require('http');
const server = http.createServer((q, r) => r.end('x'.repeat(4000))).listen(0, '127.0.0.1', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let i = 0; i < 15; i++)
    await new Promise(done => http.get({ port: server.address().port, agent }, r => r.resume().on('end', done)));
  process.exit(0);
});
"""

FILES = {
    'nginx2.conf': NGINX,
    'rsync.conf': RSYNC,
    'streams.py': STREAMS,
    'mail.py': MAIL,
    'tiny.pl': TINY,
    'agent.js': AGENT,
    'commands': ''.join(f'set k{i} {"v" * (i * 50)}\nget k{i}\n' for i in range(15)),
}

# made once, before anything is measured: what for, and how
MADE = [
    ('rsync', 'mkdir files; for i in $(seq 40); do head -c 8000 /dev/urandom > files/f$i; done'),
    ('nginx', 'mkdir put'),
]

SECOND = 'nginx -p . -c nginx2.conf & up 8081; '
POSTGRES = (
    'PATH=$PATH:$(echo /usr/lib/postgresql/*/bin); postgres -D pg -p 5433 -h 127.0.0.1 -k . >/dev/null 2>&1 & up 5433; '
    'export PGHOST=127.0.0.1 PGPORT=5433 PGUSER=me; '
)
MARIADB = (
    'mariadbd --no-defaults --datadir=$PWD/my --socket=$PWD/my.sock --port=3307 --bind-address=127.0.0.1 '
    '--skip-name-resolve >/dev/null 2>&1 & up 3307; '
)

# name, commands that must be there, what is done
ROWS = [
    (
        'rsync: 40 files from a daemon',
        'rsync',
        'rsync --daemon --no-detach --port 8730 --config rsync.conf & up 8730; rsync -a rsync://127.0.0.1:8730/files/ got/',
    ),
    (
        'nginx before nginx',
        'nginx curl',
        'nginx_up; ' + SECOND + 'curl -s -o /dev/null "http://127.0.0.1:8081/middle?[1-6]"',
    ),
    (
        'curl: HTTP/2, 20 at once',
        'nginx curl openssl',
        SECOND + 'curl -skZ --http2 -o /dev/null "https://127.0.0.1:8444/small?[1-20]"',
    ),
    ('curl: 4 MB up', 'nginx curl', SECOND + 'curl -s -T site/large http://127.0.0.1:8082/up'),
    (
        'ab: TLS, eight at a time',
        'nginx ab openssl',
        'nginx_up; ab -q -c 8 -n 48 https://127.0.0.1:8443/small >/dev/null',
    ),
    (
        'wget: without kept connections',
        'nginx wget',
        'nginx_up; wget -q --no-http-keep-alive -r -l 1 -nd -P got http://127.0.0.1:8080/index.html',
    ),
    (
        'redis-cli: 30 commands',
        'redis-server redis-cli',
        'redis-server --port 6380 --save "" >/dev/null & up 6380; redis-cli -p 6380 < commands >/dev/null',
    ),
    (
        'pgbench: four clients read',
        'pgbench',
        POSTGRES + 'pgbench -i -q postgres >/dev/null 2>&1; pgbench -S -c 4 -t 10 postgres >/dev/null 2>&1',
    ),
    (
        'mariadb-dump',
        'mariadbd mariadb-dump mysql_install_db',
        MARIADB + 'mariadb-dump --no-defaults -h 127.0.0.1 -P 3307 -u root mysql >/dev/null',
    ),
    (
        'git: push',
        'git',
        'git daemon --reuseaddr --export-all --enable=receive-pack --base-path=. --port=9418 & up 9418; '
        'git --git-dir r.git push -q git://127.0.0.1/r.git main:refs/heads/other',
    ),
    ('Perl: HTTP::Tiny', 'nginx perl', 'nginx_up; perl tiny.pl'),
    (
        'socat: 3 MB up',
        'socat',
        'socat -u TCP-LISTEN:8300,bind=127.0.0.1 OPEN:/dev/null & up 8300; '
        'socat -u OPEN:site/large TCP:127.0.0.1:8300; wait',
    ),
    ('Python: five streams of asyncio', 'python3', '/usr/bin/python3 streams.py'),
    ('Python: eight mails', 'python3', '/usr/bin/python3 mail.py'),
    ('Node: an agent with one socket', 'node', 'node agent.js'),
]
