# SPDX-License-Identifier: Apache-2.0
"""What nginx cannot do by itself: event streams and uploads that are counted and hashed.

    python3 app.py SOCKET BACKEND

Listens on a Unix socket behind nginx, which speaks HTTP/1.0 to it: one request a connection, a
body always with Content-Length, and the end of an answer is the end of the connection.

    GET  /events?seconds=S&interval=I   server-sent events, numbered from 1; one `end` event last
    PUT  /upload                        {"backend", "bytes", "sha256"} of the body as received
"""

import asyncio
import hashlib
import json
import os
import sys
import time
from urllib.parse import parse_qs, urlsplit

_CHUNK = 256 * 1024


class App:
    def __init__(self, backend: str):
        self.backend = backend

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            method, target, headers = await _read_head(reader)
            url = urlsplit(target)
            if method == "GET" and url.path == "/events":
                await self._events(writer, parse_qs(url.query))
            elif method in ("PUT", "POST") and url.path == "/upload":
                await self._upload(reader, writer, headers)
            else:
                _head(writer, "404 Not Found", "text/plain")
            await writer.drain()
        except ValueError as error:
            _head(writer, "400 Bad Request", "text/plain")
            writer.write(f"{error}\n".encode())
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left; nothing to tell it
        finally:
            writer.close()

    async def _events(self, writer: asyncio.StreamWriter, query: dict) -> None:
        seconds = float(query.get("seconds", ["20"])[0])
        interval = float(query.get("interval", ["0.2"])[0])
        if seconds <= 0 or interval <= 0:
            raise ValueError("seconds and interval must be above 0")
        _head(writer, "200 OK", "text/event-stream")
        begin = time.monotonic()
        sequence = 0
        while (due := sequence * interval) < seconds:
            # By the clock and not by the sleep, so that a stream lasts as long as it was asked to.
            await asyncio.sleep(max(0.0, begin + due - time.monotonic()))
            sequence += 1
            data = json.dumps({"sequence": sequence, "backend": self.backend})
            writer.write(f"id: {sequence}\ndata: {data}\n\n".encode())
            await writer.drain()
        data = json.dumps({"events": sequence, "backend": self.backend})
        writer.write(f"event: end\ndata: {data}\n\n".encode())

    async def _upload(self, reader, writer, headers: dict) -> None:
        expected = int(headers.get("content-length", "0"))
        digest, received = hashlib.sha256(), 0
        while received < expected and (part := await reader.read(min(_CHUNK, expected - received))):
            digest.update(part)
            received += len(part)
        _head(writer, "200 OK", "application/json")
        answer = {"backend": self.backend, "bytes": received, "sha256": digest.hexdigest()}
        writer.write((json.dumps(answer) + "\n").encode())


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, str, dict]:
    text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request, *lines = text.rstrip("\r\n").split("\r\n")
    parts = request.split(" ")
    if len(parts) != 3:
        raise ValueError("not an HTTP request")
    pairs = (line.partition(":") for line in lines)
    return parts[0], parts[1], {name.strip().lower(): value.strip() for name, _, value in pairs}


def _head(writer: asyncio.StreamWriter, status: str, content_type: str) -> None:
    head = f"HTTP/1.0 {status}\r\nContent-Type: {content_type}\r\nCache-Control: no-store\r\n\r\n"
    writer.write(head.encode())


async def main(socket: str, backend: str) -> None:
    server = await asyncio.start_unix_server(App(backend).serve, socket, backlog=4096)
    os.chmod(socket, 0o666)
    await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: app.py SOCKET BACKEND")
    asyncio.run(main(sys.argv[1], sys.argv[2]))
