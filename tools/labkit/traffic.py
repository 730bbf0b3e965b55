# SPDX-License-Identifier: Apache-2.0
"""Real clients' traffic, run inside the client's namespace; figures as JSON on standard output.

    traffic.py gets --url URL --count N [--parallel P]     new connections, one `curl` each
    traffic.py gets --url URL --until-eof [--pause S]       ... until standard input is closed
               [--limit S] [--local-ports A-B]              each at most S seconds; from these ports
    traffic.py upload --url URL --file FILE                 one PUT; the server's sum is compared
    traffic.py download --url URL --file FILE               one GET, compared with FILE
    traffic.py streams --url URL --count N [--silence S]    event streams, all at the same time

Each prints one JSON object as its last line; `streams` prints one more when all are open. Nothing
is tried twice: what fails is a failure. Times named "started" or "end" are CLOCK_MONOTONIC in
seconds, so they can be compared with those of other processes of this machine. A program of its
own: it imports nothing of the lab.
"""

import argparse
import asyncio
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

_CURL = ["curl", "--silent", "--show-error", "--globoff"]
_GET_LIMIT_S = 10.0
_TRANSFER_LIMIT_S = 60
# Longer than a stream is silent by itself; one that says nothing for so long is broken.
_STREAM_SILENCE_S = 5.0
_MOST_FAILURES_SHOWN = 20


# Single requests.


@dataclasses.dataclass
class Get:
    started: float
    seconds: float
    backend: str | None
    failure: str | None


def get(url: str, options: list[str] = ()) -> Get:
    """One request on a new connection, by curl. The body and the X-Backend header must agree."""
    started = time.monotonic()
    done = subprocess.run(
        [*_CURL, *options, "--write-out", "\n%{time_total} %{http_code} %header{x-backend}", url],
        capture_output=True,
        text=True,
    )
    body, _, last = done.stdout.rpartition("\n")
    time_total, code, backend = (last.split(" ") + [""] * 3)[:3]
    seconds = float(time_total or "nan")  # by curl's own clock: its start is not the balancer's
    if done.returncode != 0:
        return Get(started, seconds, None, done.stderr.strip() or f"curl exit {done.returncode}")
    if code != "200":
        return Get(started, seconds, backend or None, f"status {code}")
    if not backend or body.strip() != backend:
        return Get(started, seconds, None, f"answer {body[:40]!r} under the name {backend!r}")
    return Get(started, seconds, backend, None)


def gets(
    url: str,
    parallel: int,
    more,
    pause: float = 0.0,
    limit: float = _GET_LIMIT_S,
    local_ports: str | None = None,
) -> list[Get]:
    """Requests on `parallel` lanes while `more()` says so, `pause` seconds between them."""
    options = ["--max-time", str(limit)]
    if local_ports is not None:
        options += ["--local-port", local_ports]

    def lane() -> list[Get]:
        done = []
        while more():
            done.append(get(url, options))
            time.sleep(pause)
        return done

    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        lanes = [pool.submit(lane) for _ in range(parallel)]
        return sorted((one for each in lanes for one in each.result()), key=lambda g: g.started)


def gets_figures(done: list[Get]) -> dict:
    failed = [one for one in done if one.failure is not None]
    good = [one for one in done if one.failure is None]
    milliseconds = sorted(one.seconds * 1000 for one in good)
    return {
        "requests": len(done),
        "failed": len(failed),
        "failures": [
            {"started": one.started, "reason": one.failure}
            for one in failed[:_MOST_FAILURES_SHOWN]
        ],
        "backends": dict(sorted(collections.Counter(one.backend for one in good).items())),
        "milliseconds": {
            "p50": _quantile(milliseconds, 0.5),
            "p99": _quantile(milliseconds, 0.99),
            "max": _quantile(milliseconds, 1.0),
        },
        # [started, seconds, backend or None when it failed], for a look at what happened when.
        "log": [
            [one.started, one.seconds, one.backend if one.failure is None else None]
            for one in done
        ],
    }


def _quantile(ordered: list[float], part: float) -> float | None:
    if not ordered:
        return None
    return round(ordered[min(len(ordered) - 1, int(part * len(ordered)))], 2)


def count_down(count: int):
    """A `more` that says yes `count` times; safe with several lanes."""
    tickets = iter(range(count))
    lock = threading.Lock()

    def more() -> bool:
        with lock:
            return next(tickets, None) is not None

    return more


def until_eof(stream):
    """A `more` that says yes until `stream` is closed, be it because its writer died."""
    closed = threading.Event()

    def watch() -> None:
        while stream.read(4096):
            pass
        closed.set()

    threading.Thread(target=watch, daemon=True).start()
    return lambda: not closed.is_set()


# Large transfers.


def sha256_of(path: str) -> tuple[str, int]:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def upload(url: str, path: str) -> dict:
    sha256, size = sha256_of(path)
    started = time.monotonic()
    done = subprocess.run(
        [*_CURL, "--fail", "--max-time", str(_TRANSFER_LIMIT_S), "--upload-file", path, url],
        capture_output=True,
        text=True,
    )
    seconds = time.monotonic() - started
    figures = _transfer_figures(size, seconds)
    if done.returncode != 0:
        return figures | {"failure": done.stderr.strip() or f"curl exit {done.returncode}"}
    answer = json.loads(done.stdout)
    figures["backend"] = answer["backend"]
    if (answer["bytes"], answer["sha256"]) != (size, sha256):
        figures["failure"] = f"{answer['bytes']} of {size} bytes came, or other ones"
    return figures


def download(url: str, path: str) -> dict:
    sha256, size = sha256_of(path)
    digest, received = hashlib.sha256(), 0
    started = time.monotonic()
    with subprocess.Popen(
        [*_CURL, "--fail", "--max-time", str(_TRANSFER_LIMIT_S)]
        + ["--write-out", "%{stderr}%header{x-backend}", url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as curl:
        while part := curl.stdout.read(1 << 16):
            digest.update(part)
            received += len(part)
        said = curl.stderr.read().decode(errors="replace").strip()
    seconds = time.monotonic() - started
    figures = _transfer_figures(size, seconds)
    if curl.returncode != 0:
        return figures | {"failure": said or f"curl exit {curl.returncode}"}
    figures["backend"] = said
    if (received, digest.hexdigest()) != (size, sha256):
        figures["failure"] = f"{received} of {size} bytes came, or other ones"
    return figures


def _transfer_figures(size: int, seconds: float) -> dict:
    return {
        "bytes": size,
        "seconds": round(seconds, 3),
        "megabytes_per_second": round(size / 1e6 / seconds, 1),
        "backend": None,
        "failure": None,
    }


# Event streams.


class StreamBroken(Exception):
    pass


@dataclasses.dataclass
class Stream:
    """One event stream and what came of it."""

    silence_limit: float = _STREAM_SILENCE_S
    backend: str | None = None
    events: int = 0
    ended: bool = False
    failure: str | None = None
    longest_silence: float = 0.0
    finished: float | None = None  # CLOCK_MONOTONIC, however it ended

    async def run(self, url: str, opened) -> None:
        """Holds the stream to its end. `opened()` is called at the first event, or at a failure
        before it."""
        writer = None
        try:
            parts = urlsplit(url)
            port = parts.port or 80
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection(parts.hostname, port), self.silence_limit
            )
            # HTTP/1.0, so that the events come as they are and not in chunks.
            request = f"GET {parts.path}?{parts.query} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n"
            writer.write(request.encode())
            await self._read(reader, opened)
        except TimeoutError:
            self.failure = f"silent for {self.silence_limit:.0f} s after {self.events} events"
        except (OSError, asyncio.IncompleteReadError) as error:
            self.failure = f"{type(error).__name__} after {self.events} events: {error}"
        except StreamBroken as broken:
            self.failure = str(broken)
        finally:
            self.finished = time.monotonic()
            if self.events == 0:
                opened()
            if writer is not None:
                writer.close()

    async def _read(self, reader: asyncio.StreamReader, opened) -> None:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), self.silence_limit)
        status, *lines = head.decode("latin-1").split("\r\n")
        if status.split(" ")[1:2] != ["200"]:
            raise StreamBroken(f"answered {status!r}")
        for line in lines:
            name, _, value = line.partition(":")
            if name.lower() == "x-backend":
                self.backend = value.strip()
        last = time.monotonic()
        while not self.ended:
            text = await asyncio.wait_for(reader.readuntil(b"\n\n"), self.silence_limit)
            self.longest_silence = max(self.longest_silence, time.monotonic() - last)
            last = time.monotonic()
            self._take(text.decode())
            if self.events == 1 and not self.ended:
                opened()
        if await asyncio.wait_for(reader.read(1), self.silence_limit):
            raise StreamBroken("data after the end event")

    def _take(self, text: str) -> None:
        """Checks one event: numbers without a gap, always the same backend, the right count."""
        fields = dict(line.partition(": ")[::2] for line in text.strip().split("\n"))
        data = json.loads(fields["data"])
        if data["backend"] != self.backend:
            raise StreamBroken(f"{data['backend']} goes on with a stream of {self.backend}")
        if fields.get("event") == "end":
            if data["events"] != self.events:
                raise StreamBroken(f"{self.events} events came, {data['events']} were sent")
            self.ended = True
            return
        if data["sequence"] != self.events + 1:
            raise StreamBroken(f"event {data['sequence']} came after event {self.events}")
        self.events += 1


async def streams(
    url: str, count: int, tell_open, silence: float = _STREAM_SILENCE_S
) -> list[Stream]:
    """`count` streams at once; one that says nothing for `silence` seconds is broken.
    `tell_open(streams)` is called when each is open or has failed."""
    all_streams = [Stream(silence) for _ in range(count)]
    waiting = count

    def opened() -> None:
        nonlocal waiting
        waiting -= 1
        if waiting == 0:
            tell_open(all_streams)

    await asyncio.gather(*(one.run(url, opened) for one in all_streams))
    return all_streams


def streams_figures(done: list[Stream]) -> dict:
    broken = [one for one in done if one.failure is not None]
    last_end: dict[str, float] = {}
    for one in done:
        if one.backend and one.finished is not None:
            last_end[one.backend] = max(one.finished, last_end.get(one.backend, 0.0))
    return {
        "streams": len(done),
        "open": sum(1 for one in done if one.events > 0 and one.failure is None),
        "ended_well": sum(1 for one in done if one.ended and one.failure is None),
        "broken": len(broken),
        "failures": [
            {"backend": one.backend, "reason": one.failure}
            for one in broken[:_MOST_FAILURES_SHOWN]
        ],
        "backends": dict(
            sorted(collections.Counter(one.backend for one in done if one.backend).items())
        ),
        "events": sum(one.events for one in done),
        "last_end": last_end,
        "longest_silence_seconds": round(max(one.longest_silence for one in done), 3),
    }


# The command line.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("gets", "upload", "download", "streams"):
        one = kinds.add_parser(kind)
        one.add_argument("--url", required=True)
        if kind in ("upload", "download"):
            one.add_argument("--file", required=True)
        if kind == "streams":
            one.add_argument("--count", type=int, required=True)
            one.add_argument("--silence", type=float, default=_STREAM_SILENCE_S)
        if kind == "gets":
            how_long = one.add_mutually_exclusive_group(required=True)
            how_long.add_argument("--count", type=int)
            how_long.add_argument("--until-eof", action="store_true")
            one.add_argument("--parallel", type=int, default=2)
            one.add_argument("--pause", type=float, default=0.0)
            one.add_argument("--limit", type=float, default=_GET_LIMIT_S)
            one.add_argument("--local-ports")
    arguments = parser.parse_args()

    def say(figures: dict) -> None:
        print(json.dumps(figures), flush=True)

    if arguments.kind == "gets":
        more = until_eof(sys.stdin) if arguments.until_eof else count_down(arguments.count)
        done = gets(
            arguments.url,
            arguments.parallel,
            more,
            arguments.pause,
            arguments.limit,
            arguments.local_ports,
        )
        say(gets_figures(done))
    elif arguments.kind == "streams":
        tell_open = lambda now: say(streams_figures(now))  # noqa: E731
        running = streams(arguments.url, arguments.count, tell_open, arguments.silence)
        say(streams_figures(asyncio.run(running)))
    else:
        transfer = upload if arguments.kind == "upload" else download
        say(transfer(arguments.url, arguments.file))


if __name__ == "__main__":
    main()
