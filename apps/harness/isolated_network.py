"""A network of one's own for a while: its loopback addresses have all ports free, and nobody else listens there."""

import contextlib
import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def entered():
    """This thread, and what it starts, are in a new network until the end."""
    system = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if system.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "no network of one's own (unshare)")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            if system.setns(before, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "the network cannot be left (setns)")
    finally:
        os.close(before)
