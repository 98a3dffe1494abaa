"""Settings as a fresh process reads them from its environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def databases(**environment: str) -> dict[str, Any]:
    script = "import json, config.settings as s; print(json.dumps(s.DATABASES))"
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(("alias", "at_most"), [("default", 20), ("ops", 2)])
def test_the_threads_of_one_process_share_its_connections(alias: str, at_most: int) -> None:
    found = databases(ARBOR_DB_POOL_SIZE="20")[alias]
    assert found["OPTIONS"]["pool"]["max_size"] == at_most
    assert found["OPTIONS"]["pool"].get("min_size", 4) <= at_most
    assert found["CONN_MAX_AGE"] == 0


def test_the_roles_sign_in_at_an_address_that_names_no_user() -> None:
    found = databases(DATABASE_URL="postgres://db.example:5432/arbor")
    assert {alias: found[alias]["USER"] for alias in ("default", "ops")} == {
        "default": "arbor_app",
        "ops": "arbor_ops",
    }
    for each in found.values():
        assert (each["HOST"], each["PORT"], each["NAME"]) == ("db.example", 5432, "arbor")
    assert found["default"]["PASSWORD"] != found["ops"]["PASSWORD"] != ""
    assert (found["owner"]["USER"], found["owner"]["PASSWORD"]) == ("", "")


@pytest.mark.parametrize("alias", ["default", "ops"])
def test_a_process_without_threads_keeps_its_connection(alias: str) -> None:
    found = databases(ARBOR_DB_POOL_SIZE="0")[alias]
    assert "pool" not in found["OPTIONS"]
    assert found["CONN_MAX_AGE"] is None
