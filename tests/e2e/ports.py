"""Free ports for programs that must be told where to listen. On its own it prints one.

They are below those that Linux gives to sockets of any port, from 32768: so nobody else is given one before its program listens.
"""

import itertools
import random
import socket


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(count):
    """Ports that are free and differ."""
    ports = random.sample(range(16_384, 32_768), 16_384)
    return list(itertools.islice(filter(is_free, ports), count))


if __name__ == "__main__":
    print(*free_ports(1))
