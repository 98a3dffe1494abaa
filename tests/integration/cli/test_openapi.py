"""`arbor openapi`, which prints the document of the API and compares it with the committed one."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.cli import openapi
from tests.integration.cli.conftest import Arbor


def test_the_document_is_printed(arbor: Arbor) -> None:
    ran = arbor("openapi")
    assert ran.json["openapi"].startswith("3.1")
    assert arbor("openapi", "--check").code == 0


def test_an_old_document_is_reported(arbor: Arbor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openapi, "BASE_DIR", tmp_path)
    monkeypatch.setattr(openapi, "DOCUMENT", tmp_path / "openapi.json")
    ran = arbor("openapi", "--check")
    assert (ran.code, "arbor openapi >" in ran.err) == (1, True)
