# SPDX-License-Identifier: Apache-2.0
"""What tests of the decapsulation program share: frames run through it by BPF_PROG_TEST_RUN, and
what it made of them held against the judge."""

from agent_bpf import XDP_DROP, XDP_PASS, Program
from agent_lab import BACKEND, CLIENT, LB, VIP, Lab, SkippedWhereImpossible
from agent_packets import Judge, udp_packet

MIXES = [(inner, outer) for outer in (4, 6) for inner in (4, 6)]


def client_packet(version, payload=b"hello", **fields):
    return udp_packet(CLIENT[version], VIP[version], 40000, 53, payload, **fields)


class FrameTest(SkippedWhereImpossible):
    """A lab with the agent attached, whose program gets frames from the tests."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab = cls.enterClassContext(Lab())
        attached = cls.lab.attach()
        assert attached.returncode == 0, attached.stderr
        cls.program = Program(cls.lab.pins / "f" / "xdp")
        cls.addClassCleanup(cls.program.close)
        cls.judge = Judge(VIP.values(), LB.values(), BACKEND.values())

    def setUp(self):
        # The namespaces' kernels talk too (neighbour discovery): that ends as not_tunnel, which is
        # therefore left out of exact counts.
        self.before = self.lab.counters()

    def counted(self):
        """What was counted since the test began."""
        now = self.lab.counters()
        return {name: now[name] - self.before[name] for name in now
                if now[name] != self.before[name] and name != "not_tunnel"}

    def assert_comes_to(self, frame, outcome, output=None):
        """`output`: the frame that the kernel gets, if it is neither dropped nor as it came."""
        self.before = self.lab.counters()
        verdict, after, _ = self.program.run(frame)
        if outcome != "not_tunnel":
            self.assertEqual(self.counted(), {outcome: 1})
        else:
            self.assertEqual(self.counted(), {})
        dropped = outcome in ("inner_malformed", "not_vip", "ecn_conflict")
        self.assertEqual(verdict, XDP_DROP if dropped else XDP_PASS)
        if not dropped:
            self.assertEqual(after.hex(" "), (output or frame).hex(" "))
        # The judge, which the random test leans on, must be of the same opinion.
        self.assertEqual(self.judge(frame), (outcome, None if dropped else output or frame))
