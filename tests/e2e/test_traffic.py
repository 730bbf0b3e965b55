# SPDX-License-Identifier: Apache-2.0
"""The client's traffic must notice faults: each of these servers does one thing wrong. Runs on the
loopback interface, without root."""

import asyncio
import hashlib
import http.server
import json
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from labkit import traffic  # noqa: E402


def event(sequence: int, backend: str = "b1") -> str:
    return f'id: {sequence}\ndata: {{"sequence": {sequence}, "backend": "{backend}"}}\n\n'


def end(events: int) -> str:
    return f'event: end\ndata: {{"events": {events}, "backend": "b1"}}\n\n'


def stream_outcome(
    body: str, *, status: str = "200 OK", silent: bool = False, silence: float = 5.0
) -> traffic.Stream:
    """What the client makes of a server that sends `body` and closes, or falls silent."""

    async def run() -> traffic.Stream:
        done = asyncio.Event()

        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {status}\r\nX-Backend: b1\r\n\r\n{body}".encode())
            await writer.drain()
            if silent:
                await done.wait()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        opened = []
        url = f"http://127.0.0.1:{port}/events?seconds=1"
        streams = await traffic.streams(url, 1, opened.append, silence)
        done.set()
        server.close()
        assert len(opened) == 1, "told once that the streams are open"
        return streams[0]

    return asyncio.run(run())


class Streams(unittest.TestCase):
    def test_a_whole_stream_is_good(self):
        stream = stream_outcome(event(1) + event(2) + end(2))
        self.assertIsNone(stream.failure)
        self.assertTrue(stream.ended)
        self.assertEqual((stream.backend, stream.events), ("b1", 2))

    def test_faults_are_seen(self):
        for fault, body, reason in (
            ("a gap", event(1) + event(3) + end(2), "event 3 came after event 1"),
            ("a repeat", event(1) + event(1) + end(2), "event 1 came after event 1"),
            ("another backend", event(1) + event(2, "b2") + end(2), "b2 goes on"),
            ("no end", event(1) + event(2), "IncompleteReadError after 2 events"),
            ("half an event", event(1) + event(2)[:-5], "IncompleteReadError after 1 events"),
            ("a loss before the end", event(1) + end(2), "1 events came, 2 were sent"),
            ("more after the end", event(1) + end(1) + event(2), "data after the end"),
            ("nothing", "", "IncompleteReadError after 0 events"),
        ):
            with self.subTest(fault=fault):
                stream = stream_outcome(body)
                self.assertIn(reason, str(stream.failure))
                self.assertEqual(traffic.streams_figures([stream])["broken"], 1)

    def test_an_error_status_is_seen(self):
        self.assertIn("502", stream_outcome("", status="502 Bad Gateway").failure)

    def test_silence_is_seen(self):
        stream = stream_outcome(event(1), silent=True, silence=0.2)
        self.assertIn("silent", stream.failure)

    def test_a_refused_connection_is_seen(self):
        (stream,) = asyncio.run(traffic.streams("http://127.0.0.1:1/events?", 1, lambda _: None))
        self.assertIn("ConnectionRefusedError", stream.failure)


class Wrong(http.server.BaseHTTPRequestHandler):
    """Answers by the path: what is wrong."""

    def do_GET(self):
        body = {"/good": b"b1\n", "/liar": b"b2\n", "/blob": b"x" * 1000}.get(self.path, b"")
        self.send_response(503 if self.path == "/busy" else 200)
        self.send_header("X-Backend", "b1")
        self.send_header("Content-Length", str(len(body) + (self.path == "/short")))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/loses":
            body = body[1:]
        answer = {"backend": "b1", "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


class Requests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Wrong)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        cls.base = f"http://127.0.0.1:{server.server_port}"
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.same = Path(folder.name) / "same"
        cls.same.write_bytes(b"x" * 1000)
        cls.other = Path(folder.name) / "other"
        cls.other.write_bytes(b"x" * 999 + b"y")

    def test_every_request_is_counted_by_its_backend(self):
        done = traffic.gets(self.base + "/good", 3, traffic.count_down(7))
        figures = traffic.gets_figures(done)
        self.assertEqual((figures["requests"], figures["failed"]), (7, 0), figures)
        self.assertEqual(figures["backends"], {"b1": 7})

    def test_failed_requests_have_a_reason(self):
        for path, reason in (("/busy", "503"), ("/liar", "b2"), ("/short", "(18)")):
            with self.subTest(path=path):
                figures = traffic.gets_figures([traffic.get(self.base + path)])
                self.assertEqual(figures["failed"], 1)
                self.assertIn(reason, figures["failures"][0]["reason"])
        self.assertIn("connect", traffic.get("http://127.0.0.1:1/").failure)

    def test_transfers_are_compared_byte_by_byte(self):
        self.assertIsNone(traffic.upload(self.base + "/keeps", str(self.same))["failure"])
        lost = traffic.upload(self.base + "/loses", str(self.same))
        self.assertIn("999 of 1000", lost["failure"])
        self.assertIsNone(traffic.download(self.base + "/blob", str(self.same))["failure"])
        wrong = traffic.download(self.base + "/blob", str(self.other))
        self.assertIn("or other ones", wrong["failure"])
        self.assertIsNotNone(traffic.download(self.base + "/busy", str(self.same))["failure"])


if __name__ == "__main__":
    unittest.main()
