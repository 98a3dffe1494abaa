"""The version of Arbor."""

from __future__ import annotations

#: As in `pyproject.toml`.
VERSION = "0.1.0"
