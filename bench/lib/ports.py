"""Ports of loopback for servers that are about to start."""

import collections
import random
import socket

# Below the range from which the kernel assigns ports by itself (32768 on, see net.ipv4.ip_local_port_range), and beside
# the one from which the tests of crates draw theirs (testkit::process::free_port).
FIRST, LAST = 30_300, 32_700
# Each is an abstract unix socket with the name of a port; the system gives it back when the program ends. One that has
# drawn more ports than these has closed the servers of the first.
_taken = collections.deque(maxlen=1000)


def free_port(address="127.0.0.1"):
    """A port that nobody listens on, and that no other program of these tests is given while this one runs.

    A server may take seconds until it listens. A port that the kernel assigned to a probe may be assigned to
    another program meanwhile, and who waits for the server then speaks with that one.
    """
    ports = list(range(FIRST, LAST))
    random.SystemRandom().shuffle(ports)
    for port in ports:
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0mayfly-test-port-{port}")
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((address, port))
        except OSError:
            name.close()
            continue
        _taken.append(name)
        return port
    raise RuntimeError(f"no port from {FIRST} to {LAST} is free")
