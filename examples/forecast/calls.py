"""Python's own clients and servers: `xmlrpc`, a kept connection with bodies of 100 KB (`post`), a pool of threads (`pool`),
many small messages answered one by one (`echo`)."""

import concurrent.futures
import http.client
import http.server
import socket
import sys
import threading
import urllib.request
import xmlrpc.client
import xmlrpc.server


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        self.answer(b'x' * 5000)

    def do_POST(self):
        self.answer(b'%d' % len(self.rfile.read(int(self.headers['Content-Length']))))

    def answer(self, body):
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serving(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def by_xmlrpc():
    server = xmlrpc.server.SimpleXMLRPCServer(('127.0.0.1', 0), logRequests=False)
    server.register_function(lambda a, b: a + b, 'add')
    with xmlrpc.client.ServerProxy(f'http://127.0.0.1:{serving(server)}/') as proxy:
        assert sum(proxy.add(i, 1) for i in range(15)) == 120


def by_post():
    port = serving(http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler))
    client = http.client.HTTPConnection('127.0.0.1', port)
    for _ in range(8):
        client.request('POST', '/', b'x' * 100_000)
        assert client.getresponse().read() == b'100000'


def by_pool():
    port = serving(http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler))

    def one(_):
        return len(urllib.request.urlopen(f'http://127.0.0.1:{port}/').read())

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(one, range(24))) == 24 * 5000


def by_echo():
    listener = socket.create_server(('127.0.0.1', 0))

    def serve():
        peer, _ = listener.accept()
        while data := peer.recv(4096):
            peer.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    with socket.create_connection(listener.getsockname()) as client:
        for i in range(40):
            client.sendall(b'%040d' % i)
            assert client.recv(4096)


{'xmlrpc': by_xmlrpc, 'post': by_post, 'pool': by_pool, 'echo': by_echo}[sys.argv[1]]()
