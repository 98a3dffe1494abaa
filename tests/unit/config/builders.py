"""Builders of plans of an installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from config.cli.installation.parts import NAMES, InstallationPlan
from config.servers import EmbeddedPostgres, EmbeddedValkey
from config.supervisor.fork_server import ForkServer
from config.supervisor.run_folder import RunFolder


def installation_plan(folder: Path, **changes: Any) -> InstallationPlan:
    """Return the plan of a whole installation in a folder, with the demo and without secrets."""
    values: dict[str, Any] = {
        "run": RunFolder(folder),
        "postgres": EmbeddedPostgres(folder / "postgres"),
        "valkey": EmbeddedValkey(folder / "valkey"),
        "web_host": "127.0.0.1",
        "web_port": 8000,
        "api_host": "127.0.0.1",
        "api_port": 8001,
        "flower_port": 5555,
        "demo": True,
        "only": frozenset(NAMES),
        "fork_server": ForkServer({}),
        "secrets": {},
    }
    return InstallationPlan(**(values | changes))
