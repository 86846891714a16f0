#!/usr/bin/env python3
"""Starts the server beside it, asks it ten times, and says how long that took.  tcpwhy run -- ./client.py says why."""

import pathlib
import socket
import struct
import subprocess
import sys
import time

server = [sys.executable, str(pathlib.Path(__file__).with_name('server.py'))]
with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as child:
    connection = socket.create_connection(('127.0.0.1', int(child.stdout.readline())))
    start = time.monotonic()
    for _ in range(10):
        question = b'q' * 2048
        connection.sendall(struct.pack('>I', len(question)))  # a small write ...
        connection.sendall(question)  # ... and another: the kernel holds it back
        connection.recv(4 + 256, socket.MSG_WAITALL)
    print(f'10 requests in {time.monotonic() - start:.3f} s')
    connection.close()
