# SPDX-License-Identifier: Apache-2.0
"""UDP in a lab, both ends; test_udp_sizes.py starts them in namespaces.

    python3 udp_echo.py serve NAME PORT... -- ADDRESS...
    python3 udp_echo.py ask SOURCE VIP PORT SIZE...
    python3 udp_echo.py ask_in_pieces SOURCE VIP PORT ORDER

`serve` answers each datagram from the address that it was sent to: NAME, a colon, and the datagram.
`ask` sends one of each size from one socket, and one that is not fragmented before, and prints what
came back as JSON: {"backends": [...], "lost": [sizes], "wrong": [sizes]}. `ask_in_pieces` does that
with one datagram, cut into pieces of 800 bytes that it sends itself in ORDER: a comma-separated list
of their numbers, in which one may be missing or appear twice. "=" between two of them pauses."""

import json
import random
import selectors
import socket
import struct
import sys
import time

import frames

PATIENCE_SECONDS = 2.0
PIECE = 800
RAW_SIZE = 2400  # bytes of UDP payload that are sent in pieces: four of them


def family_of(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def bound(address: str, port: int) -> socket.socket:
    one = socket.socket(family_of(address), socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    one.bind((address, port))
    return one


def serve(name: str, ports: list[str], addresses: list[str]) -> None:
    selector = selectors.DefaultSelector()
    for address in addresses:
        for port in ports:
            selector.register(bound(address, int(port)), selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            datagram, client = key.fileobj.recvfrom(65536)
            key.fileobj.sendto(name.encode() + b":" + datagram, client)


class Asked:
    """What came back."""

    def __init__(self):
        self.backends: set[str] = set()
        self.lost: list[int] = []
        self.wrong: list[int] = []

    def hear(self, one: socket.socket, sent: bytes) -> None:
        try:
            answer = one.recv(65536)
        except TimeoutError:
            self.lost.append(len(sent))
            return
        name, _, datagram = answer.partition(b":")
        self.backends.add(name.decode())
        if datagram != sent:
            self.wrong.append(len(sent))

    def text(self) -> str:
        return json.dumps(
            {"backends": sorted(self.backends), "lost": self.lost, "wrong": self.wrong}
        )


def ask(source: str, vip: str, port: str, *sizes: str) -> None:
    asked = Asked()
    with bound(source, 0) as one:
        one.settimeout(PATIENCE_SECONDS)
        one.connect((vip, int(port)))
        for size in (100, *(int(size) for size in sizes)):
            datagram = random.Random(size).randbytes(size)
            one.send(datagram)
            asked.hear(one, datagram)
    print(asked.text())


def pieces_of(source: tuple[str, int], target: tuple[str, int], datagram: bytes) -> list[bytes]:
    whole = frames.udp(source, target, datagram)
    v6 = ":" in target[0]
    body = whole[40:] if v6 else whole[20:]
    number = random.getrandbits(16)
    pieces = []
    for at in range(0, len(body), PIECE):
        more = at + PIECE < len(body)
        part = body[at : at + PIECE]
        if v6:
            head = struct.pack("!BBHI", frames.UDP, 0, at | more, number)
            pieces.append(frames.ip(source[0], target[0], frames.FRAGMENT, head + part))
        else:
            fields = {"identification": number, "fragment": more << 13 | at // 8}
            pieces.append(frames.ip(source[0], target[0], frames.UDP, part, **fields))
    return pieces


def ask_in_pieces(source: str, vip: str, port: str, order: str) -> None:
    asked = Asked()
    with bound(source, 0) as one, socket.socket(
        family_of(vip), socket.SOCK_RAW, socket.IPPROTO_RAW
    ) as raw:
        one.settimeout(PATIENCE_SECONDS)
        one.connect((vip, int(port)))
        one.send(b"whole")
        asked.hear(one, b"whole")
        datagram = random.Random(order).randbytes(RAW_SIZE)
        pieces = pieces_of(one.getsockname()[:2], (vip, int(port)), datagram)
        for step in order.split(","):
            if step == "=":
                time.sleep(0.1)
            else:
                raw.sendto(pieces[int(step)], (vip, 0))
        asked.hear(one, datagram)
    print(asked.text())


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "serve":
        end = words.index("--")
        serve(words[0], words[1:end], words[end + 1 :])
    elif what == "ask":
        ask(*words)
    else:
        ask_in_pieces(*words)
