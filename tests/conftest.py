"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import pytest

from tests.support import hypothesis_profiles


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the profile and the seed of Hypothesis before its plugin reads them."""
    hypothesis_profiles.configure(config)


def pytest_report_header(config: pytest.Config) -> str:
    """Print the seed, so that a failure can be repeated."""
    return hypothesis_profiles.report_seed(config)


def pytest_sessionstart() -> None:
    """Disable the garbage collector while tests are collected, which leaves no garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt modules and tests, which stay until the end, from all collections of garbage."""
    gc.freeze()
    # Pages, migrations and generated examples make many short-lived objects, few of them in cycles.
    gc.set_threshold(50_000, 10, 20)
    gc.enable()


def _is_beyond_this_machine(family: int, address: Any) -> bool:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return False
    host = str(address[0])
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


@pytest.fixture(autouse=True, scope="session")
def _no_call_leaves_this_machine() -> Iterator[None]:
    """Make calls to real models impossible, whose settings `tests.environment` removes: refuse connections beyond loopback."""
    really_connect, really_connect_ex = socket.socket.connect, socket.socket.connect_ex

    def refuse_other_machines(sock: socket.socket, address: Any) -> None:
        if _is_beyond_this_machine(sock.family, address):
            raise RuntimeError(f"a test tried to connect to {address}: tests talk to this machine only")

    def connect(sock: socket.socket, address: Any) -> None:
        refuse_other_machines(sock, address)
        really_connect(sock, address)

    def connect_ex(sock: socket.socket, address: Any) -> int:
        refuse_other_machines(sock, address)
        return really_connect_ex(sock, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        patch.setattr(socket.socket, "connect_ex", connect_ex)
        yield


@pytest.fixture(autouse=True, scope="session")
def _idle_connections_are_closed_at_the_end() -> Iterator[None]:
    """Close the connections of the process's clients: Python warns of each socket that is open at its end."""
    yield
    transport = sys.modules.get("arbor.adapters.transport")
    for client in (transport.shared_client, transport.public_client) if transport else ():
        if client.cache_info().currsize:
            client().close()
