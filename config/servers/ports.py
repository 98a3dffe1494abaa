"""Find a free port of the loopback, the next one at or above a wanted port."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection

from arbor.errors import ServerError

LOOPBACK = "127.0.0.1"
#: The number of ports that are tried.
PORT_SEARCH = 200


def is_free(port: int, *, host: str = LOOPBACK) -> bool:
    """Return whether a server could listen on a port now. Raises ServerError for an address that is not this machine's."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # A port with a closed connection in TIME_WAIT is free for servers, which set this option too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise _foreign_address(host, error) from error
        return True


def _foreign_address(host: str, error: OSError) -> ServerError:
    return ServerError(
        f"no server can listen on {host}: {error.strerror}; name an IPv4 address of this machine, such as {LOOPBACK}"
    )


def free_port(
    wanted: int | None = None, *, host: str = LOOPBACK, reserved: Collection[int] = frozenset()
) -> int:
    """Return the first free port at or above the wanted one; without a wanted port, any free port.

    `reserved` are ports of servers that have not started yet. Raises ServerError for an address that is not this machine's, and
    if none of 200 ports from the wanted one on is free.
    """
    if not wanted:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((host, 0))
            except OSError as error:
                raise _foreign_address(host, error) from error
            return int(probe.getsockname()[1])
    ports = range(max(wanted, 1), min(wanted + PORT_SEARCH, 65_536))
    for port in ports:
        if port not in reserved and is_free(port, host=host):
            return port
    raise ServerError(f"no port of {host} from {wanted} to {ports.stop - 1} is free: choose another one")
