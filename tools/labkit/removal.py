# SPDX-License-Identifier: Apache-2.0
"""Takes labs away again: all that a lab made, and nothing else. Needs root."""

import contextlib
import os
import shutil
import signal
import threading

from labkit import namespaces, state


def remove_stale() -> None:
    """Removes what killed runs left behind. Requires: the lock is held."""
    for name in state.names():
        try:
            found = state.load(name)
        except state.NotUnderstood:
            continue  # another version's lab, which may be in use
        if found is None:
            # Killed between making the folder and writing its first state: nothing else is there.
            shutil.rmtree(state.ROOT / name)
        elif found.stale():
            remove(found)


def remove(lab: state.State) -> None:
    """Removes one lab; what is gone already does not matter. Requires: the lock is held."""
    ours = {}
    for namespace, recorded in lab.namespaces.items():
        inode = namespaces.inode(namespace)
        # Another inode: the name was taken anew by somebody else. 0: killed while it was made.
        if inode is not None and recorded in (0, inode):
            ours[namespace] = inode
    namespaces.stop_processes(set(ours.values()))
    for namespace in ours:
        namespaces.delete(namespace)
    for mount_point in lab.mounts:
        while os.path.ismount(mount_point):
            namespaces.run(["umount", "--lazy", mount_point])
    # Never through a mount: what is mounted there would be emptied.
    shutil.rmtree(lab.folder, ignore_errors=True)


@contextlib.contextmanager
def undisturbed():
    """A second Ctrl-C must not stop the removal half-way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
