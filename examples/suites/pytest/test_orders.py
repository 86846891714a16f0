"""A service that is asked with a length and a body. Sent by two writes, each request waits 40 ms; FIXED=1 sends both at once."""

import os
import socket
import struct
import threading

import pytest


def serve(listener):
    connection, _ = listener.accept()
    with connection:
        while head := connection.recv(4, socket.MSG_WAITALL):
            body = connection.recv(struct.unpack('>I', head)[0], socket.MSG_WAITALL)
            connection.sendall(head + body)


@pytest.fixture
def orders():
    with socket.create_server(('127.0.0.1', 0)) as listener:
        threading.Thread(target=serve, args=[listener], daemon=True).start()
        with socket.create_connection(listener.getsockname()) as connection:
            yield connection


def test_ten_orders(orders):
    for number in range(10):
        body = f'order {number}'.encode()
        head = struct.pack('>I', len(body))
        if os.environ.get('FIXED'):
            orders.sendall(head + body)
        else:
            orders.sendall(head)
            orders.sendall(body)
        assert orders.recv(4 + len(body), socket.MSG_WAITALL)[4:] == body
