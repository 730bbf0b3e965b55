# SPDX-License-Identifier: Apache-2.0
"""The first steps of raising a lab: its name and state file, namespaces, links, bpffs. Needs root.
Whatever is about to be made is written down in the state file first."""

import os

from labkit import namespaces, removal, state
from labkit.errors import LabError
from labkit.topology import Topology


def claim(lab: state.State, wanted_name: str | None, topology: Topology) -> state.State:
    """Settles the lab's name, by default the first free one, and writes its state file: from here
    on it belongs to this process. What killed runs left behind goes first."""
    with state.locked():
        removal.remove_stale()
        lab.name = _free_name(wanted_name, topology)
        lab.set_owner(os.getpid())
        state.claim(lab)
    return lab


def _free_name(wanted: str | None, topology: Topology) -> str:
    if wanted is not None:
        reason = _taken(wanted, topology)
        if reason is not None:
            raise LabError(reason)
        return wanted
    number = 1
    while True:
        name = state.DEFAULT_NAME if number == 1 else f"{state.DEFAULT_NAME}{number}"
        if _taken(name, topology) is None:
            return name
        number += 1


def _taken(name: str, topology: Topology) -> str | None:
    """Why `name` cannot be had; None when it can. Requires: stale labs are removed."""
    try:
        if state.load(name) is not None:
            return f"a lab {name!r} is up: remove it with `tools/lab down --name {name}`"
    except state.NotUnderstood as fault:
        return str(fault)
    for host in topology.host_names:
        if namespaces.exists(f"{name}-{host}"):
            return f"namespace {name}-{host} exists and no lab made it: choose another name"
    return None


def make_network(lab) -> None:
    """Namespaces, folders, links, addresses."""
    for host in lab.topology.host_names:
        namespace = lab.namespace(host)
        lab.state.namespaces[namespace] = 0
        lab.state.save()
        try:
            lab.state.namespaces[namespace] = namespaces.add(namespace)
        except LabError:
            del lab.state.namespaces[namespace]  # somebody else's: not ours to remove
            raise
        finally:
            lab.state.save()
        lab.path(host).mkdir()
    lab.path("www").mkdir()
    router = lab.namespace("router")
    namespaces.set_sysctls(router, namespaces.sysctls_of("router"))
    namespaces.run(["ip", "-n", router, "link", "set", "lo", "up"])
    for host in lab.topology.linked_hosts:
        namespace = lab.namespace(host.name)
        namespaces.set_sysctls(namespace, namespaces.sysctls_of(host.role))
        namespaces.link(host, namespace, router, lab.topology.vips)


def mount_bpffs(lab) -> None:
    mount_point = lab.path("bpf")
    mount_point.mkdir()
    lab.state.mounts.append(str(mount_point))
    lab.state.save()
    namespaces.run(["mount", "-t", "bpf", "bpffs", str(mount_point)])
