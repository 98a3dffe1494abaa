"""Settings read in another environment."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SETTINGS = Path(__file__).parents[2] / "config" / "settings.py"


def read_settings(**environment: str) -> dict[str, Any]:
    """Run the settings under these environment variables; return their names and values."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        return runpy.run_path(str(SETTINGS))
