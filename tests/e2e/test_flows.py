# SPDX-License-Identifier: Apache-2.0
"""`holdfast flows` about real streams, some of which have nothing to say for a while."""

import collections
import json
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from daemon import wait_for  # noqa: E402
from recovery import RecoveryCase  # noqa: E402

from labkit.client import Client  # noqa: E402

BUSY = 6
SILENT = 5


class Streams(RecoveryCase):
    def ask(self, *words: str) -> list[dict]:
        """What each load balancer answers: the router spreads streams over them."""
        return [json.loads(self.lab.holdfast(["--json", *words], lb=lb.name).stdout.splitlines()[-1])
                for lb in self.lab.topology.lbs]

    def total(self, *words: str) -> collections.Counter:
        totals = collections.Counter()
        for answer in self.ask("flows", "count", *words):
            totals.update(answer["total"])
        return totals

    def active_by_pools(self) -> int:
        return sum(backend["active_flows"] for pool in ("web", "web6")
                   for answer in self.ask("pool", "show", pool) for backend in answer["backends"])

    def tags_by_address(self, vip: str) -> set[str]:
        """Of the client's connections, as `holdfast lookup` tells them."""
        shown = self.lab.exec("client", ["ss", "-tnH", "state", "established", "dst", vip]).stdout
        ends = [line.split()[2:4] for line in shown.splitlines()]
        return {self.ask("lookup", "tcp", *end)[0]["tag"] for end in ends}

    def test_streams_are_listed_counted_and_idle_ones_told_apart(self):
        before = self.total()
        client = Client(self.lab)
        vip = self.lab.topology.vip4
        running = [
            client.start_streams(client.url(vip, f"/events?seconds={seconds}&interval={interval}"),
                                 count, silence=30.0)
            for seconds, interval, count in ((9, 0.1, BUSY), (9, 8, SILENT))
        ]
        started = time.monotonic()
        backends = collections.Counter()
        for one in running:
            backends.update(one.wait_open()["backends"])
        self.assertEqual(sum(backends.values()), BUSY + SILENT)
        time.sleep(3.5)  # the silence is what is to be seen

        counted = self.total("--idle", "2s")
        rows = [row for answer in self.ask("flows", "list", "--state", "active", "--limit", "1000")
                for row in answer["flows"] if row["age_seconds"] < time.monotonic() - started + 1]
        silent = [row for answer in self.ask("flows", "list", "--state", "active", "--idle-over", "2s",
                                             "--age-over", "2s")
                  for row in answer["flows"] if row["age_seconds"] < time.monotonic() - started + 1]
        by_pools = self.active_by_pools()
        looked_up = self.tags_by_address(vip)
        self.assertLess(time.monotonic() - started, 7.5, "too slow to have seen the silence")

        self.assertEqual(counted["active"], BUSY)
        self.assertEqual(counted["idle"] - before["active"], SILENT)
        self.assertEqual(by_pools, counted["active"] + counted["idle"])
        self.assertEqual(collections.Counter(row["backend"] for row in rows),
                         {f"web/{name}": count for name, count in backends.items()})
        self.assertEqual({row["tag"] for row in rows}, looked_up)
        self.assertEqual(len(rows), BUSY + SILENT)
        self.assertEqual(len(silent), SILENT)

        for one in running:
            self.assertEqual(one.result()["broken"], 0)
        wait_for(lambda: self.total()["active"] == before["active"], "the flows to close")
        self.assertGreaterEqual(self.total()["closing"], BUSY + SILENT)


if __name__ == "__main__":
    unittest.main()
