# SPDX-License-Identifier: Apache-2.0
"""The lab: a client, a router, load balancers and backends in network namespaces of one machine.

    from labkit import Lab
    with Lab() as lab:                      # as root; removed at the end, also after a failure
        lab.exec("client", ["curl", "-sS", f"http://{lab.topology.vip4}/"])
        lab.holdfast(["pool", "show", "web"])

`topology` holds every name, address and MTU, and the drawing. Standard library only.
"""

from labkit.errors import LabError
from labkit.lab import Lab
from labkit.topology import Topology

__all__ = ["Lab", "LabError", "Topology"]
