"""Settings read in another environment."""

from __future__ import annotations

import importlib
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import structlog

import config

FOLDER = Path(__file__).parents[2] / "config" / "settings"


def read_settings(**environment: str) -> dict[str, Any]:
    """Load the settings as a process does that starts under these environment variables; return their names and values."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        # The settings configure logging. Loggers that are in use keep the earlier configuration, which `capture_logs` changes.
        stack.callback(structlog.configure, **structlog.get_config())
        for name, value in environment.items():
            patch.setenv(name, value)
        for name in [name for name in sys.modules if f"{name}.".startswith("config.settings.")]:
            patch.delitem(sys.modules, name)
        # Restores the attribute that the import sets.
        patch.setattr(config, "settings", None, raising=False)
        return vars(importlib.import_module("config.settings"))
