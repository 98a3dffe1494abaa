"""The version of Arbor, in code and package."""

from __future__ import annotations

import tomllib
from pathlib import Path

from arbor.version import VERSION

ROOT = Path(__file__).parents[2]


def test_the_code_has_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == VERSION
