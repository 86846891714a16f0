"""A web server to measure at: nginx on loopback, over TLS, or in a network namespace behind a link."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 60
NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000000;
  server {{ listen {address}:{port}{tls}; set $a "{word}"; location / {{ return 200 "{body}"; }} }} }}
"""


class Site:
    """nginx on loopback, or in a network namespace behind a link (a pair of veth)."""

    def __init__(self, kind):
        self.folder, self.hold, linked = tempfile.mkdtemp(), None, kind == 'link'
        self.address, self.port = ('10.98.7.2' if linked else '127.0.0.1'), 8099
        self.device, inside = 'lo', []
        if linked:
            self.hold = subprocess.Popen(['unshare', '--net', 'sleep', 'infinity'])
            self.device = f'tcpwhy{os.getpid() % 100000}'
            end = time.monotonic() + PATIENCE
            while os.readlink(f'/proc/{self.hold.pid}/ns/net') == os.readlink('/proc/self/ns/net'):
                if time.monotonic() > end:
                    sys.exit('no network namespace')
                time.sleep(0.01)
            inside = ['nsenter', '--net', '--target', str(self.hold.pid)]
            far = ['type', 'veth', 'peer', 'name', 'far', 'netns', str(self.hold.pid)]
            for command in (
                ['ip', 'link', 'add', self.device, *far],
                ['ip', 'address', 'add', '10.98.7.1/24', 'dev', self.device],
                ['ip', 'link', 'set', self.device, 'up'],
                [*inside, 'ip', 'address', 'add', '10.98.7.2/24', 'dev', 'far'],
                [*inside, 'ip', 'link', 'set', 'far', 'up'],
                [*inside, 'ip', 'link', 'set', 'lo', 'up'],
            ):
                subprocess.run(command, check=True)
        self.url = f'http{"s" * (kind == "tls")}://{self.address}:{self.port}/'
        config = os.path.join(self.folder, 'nginx.conf')
        with open(config, 'w', encoding='utf8') as f:
            f.write(self.configuration(kind == 'tls'))
        self.nginx = subprocess.Popen([*inside, 'nginx', '-c', config, '-p', self.folder], stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while socket.socket().connect_ex((self.address, self.port)) != 0:
            if time.monotonic() > end:
                sys.exit('nginx does not listen')
            time.sleep(0.05)

    def configuration(self, secret):
        tls = ''
        if secret:
            names = ['-subj', '/CN=localhost', '-keyout', f'{self.folder}/key', '-out', f'{self.folder}/certificate']
            make = ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', *names]
            subprocess.run(make, check=True, capture_output=True)
            tls = f' ssl; ssl_certificate {self.folder}/certificate; ssl_certificate_key {self.folder}/key'
        # a word has at most 4 KB
        words = {'word': 'x' * (4000 if secret else 512), 'body': '$a$a$a$a' if secret else '$a'}
        return NGINX.format(folder=self.folder, address=self.address, port=self.port, tls=tls, **words)

    def end(self):
        for process in (self.nginx, self.hold):
            if process:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
