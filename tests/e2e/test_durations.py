# SPDX-License-Identifier: Apache-2.0
"""How long streams last, by a real holdfastd's clock, workers and flow tables. Needs root: makes
network namespaces."""

import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import frames as f  # noqa: E402
from on_a_wire import VIP4, OnAWire, needs_root  # noqa: E402


def setUpModule():
    needs_root()


def segment(client: int, flags: int, data: bytes = b"") -> bytes:
    return f.tcp(("198.51.100.7", client), (VIP4, 80), flags, data)


class Durations(OnAWire):
    queues = 2
    workers = 2

    def pass_on(self, *packets: bytes) -> None:
        """Sends them and sees all of them tunnelled."""
        self.assertEqual(len(self.tunnelled(list(packets))), len(packets))

    def test_streams_are_told_with_the_time_that_they_took(self):
        daemon = self.daemon().start()
        told = daemon.ask("flows", "durations", "web")
        self.assertEqual((told["ended"], told["open"], told["p50"]), (0, 0, None))

        clients = range(1000, 1012)
        short, long, going_on = clients[:4], clients[4:8], clients[8:]
        for flags in (f.SYN, f.ACK):
            self.pass_on(*(segment(client, flags) for client in clients))
        self.pass_on(segment(2000, f.SYN))  # a handshake without an end
        self.pass_on(segment(2001, f.ACK, b"from the middle"), segment(2001, f.ACK, b"of a stream"))
        begun = time.monotonic()
        self.pass_on(*(segment(client, f.RST) for client in short))
        time.sleep(2.5 - (time.monotonic() - begun))
        self.pass_on(*(segment(client, f.FIN | f.ACK) for client in long))
        self.pass_on(*(segment(client, f.ACK) for client in going_on))

        told = daemon.ask("flows", "durations", "web")
        self.assertEqual([told[key] for key in ("ended", "open", "lost", "excluded", "reset")],
                         [8, 4, 0, 1, 4])
        self.assertEqual(told["reset_share"], 0.5)
        # Of 12 the first 4 are over at once, 4 after 2.5 s, and 4 go on for longer than that.
        self.assertEqual(told["p50"]["more"], False)
        self.assertAlmostEqual(told["p50"]["seconds"], 2.5, delta=0.6)
        self.assertEqual(told["p90"]["more"], True)
        self.assertAlmostEqual(told["p90"]["seconds"], 2.5, delta=0.6)
        self.assertEqual(told["max"], told["p90"])

        told = daemon.ask("service", "list")["services"][0]
        self.assertEqual((told["active_flows"], told["closing"], told["embryonic"]), (5, 8, 1))
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
