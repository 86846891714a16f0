#!/usr/bin/env python3
"""Answers each message (its length in 4 bytes, then its bytes) with one of 256 bytes, as many small protocols do."""

import socket
import struct


def read(connection: socket.socket) -> bytes:
    head = connection.recv(4, socket.MSG_WAITALL)
    return connection.recv(struct.unpack('>I', head)[0], socket.MSG_WAITALL) if head else b''


listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
while read(connection):
    answer = b'a' * 256
    connection.sendall(struct.pack('>I', len(answer)))  # a small write ...
    connection.sendall(answer)  # ... and another: the kernel holds it back
