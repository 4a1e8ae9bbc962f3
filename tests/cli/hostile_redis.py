#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A Redis server whose one lock has escape sequences in name, host and note.

Prints its port, then answers what "holdfast ls" and "show" ask.
"""
import socket
import threading

NAME = b"hf:{k%1B%0A}"
RECORD = (b"0" * 44 + b"x" + b"0" * 58 +
          b"ho\x1b[31mst\n1\now\x1b]0;x\x07\xc2\x9bner\n"
          b"no\xff\xe2\x80\xaete\xe2\x80\xa8\xf3\xa0\x80\x81\"\\")


def bulk(text):
    return b"$%d\r\n" % len(text) + text + b"\r\n"


LOOK = (b"*1\r\n*7\r\n" + bulk(NAME) + bulk(RECORD) + b":5000\r\n:5\r\n:0\r\n" +
        b"*0\r\n*2\r\n" + bulk(RECORD) * 2)
ANSWERS = {
    b"HELLO": b"%3\r\n$2\r\nid\r\n:5\r\n$7\r\nversion\r\n$5\r\n7.0.1\r\n"
              b"$4\r\nrole\r\n$6\r\nmaster\r\n",
    b"INFO": bulk(b"redis_mode:standalone\r\nrun_id:" + b"a" * 40 + b"\r\n"),
    b"SCAN": b"*2\r\n" + bulk(b"0") + b"*1\r\n" + bulk(NAME),
    b"SCRIPT": bulk(b"0" * 40),
    b"EVAL": LOOK,
    b"EVALSHA": LOOK,
}


def read_command(stream):
    words = []
    for _ in range(int(stream.readline()[1:])):
        length = int(stream.readline()[1:])
        words.append(stream.read(length + 2)[:-2])
    return words


def serve(connection):
    stream = connection.makefile("rb")
    try:
        while True:
            word = read_command(stream)[0].upper()
            connection.sendall(ANSWERS.get(word, b"-ERR no\r\n"))
    except (OSError, ValueError):
        connection.close()


listener = socket.create_server(("127.0.0.1", 0))
print("port=%d" % listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],),
                     daemon=True).start()
