"""The environment of a temporary installation."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from bench.support.installation import Installation
from config.process_secrets import MODEL_KEYS

#: The keys of model providers, and their addresses.
OF_PROVIDERS = (
    *sorted(MODEL_KEYS),
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "ANTHROPIC_BASE_URL",
    "OLLAMA_HOST",
)


def test_a_developers_models_and_settings_reach_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in OF_PROVIDERS:
        monkeypatch.setenv(name, "the developer's")
        monkeypatch.setenv(f"{name}_FILE", "the developer's")
    environment = Installation().full_env
    assert {name: environment[name] for name in OF_PROVIDERS} == dict.fromkeys(OF_PROVIDERS, "")
    assert [name for name in OF_PROVIDERS if f"{name}_FILE" in environment] == []
    assert environment["ARBOR_ENV_FILE"] == ""


def test_a_process_enters_no_settings_of_a_developer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(
        os, "environ", {"PATH": "/bin", "ARBOR_HEARTBEAT_INTERVAL": "1", "OPENAI_API_KEY": "x"}
    )
    installation = Installation(settings={"ARBOR_PREPARED_STATEMENTS": "true"})
    installation.enter_environment()
    assert os.environ == {"PATH": "/bin", **installation.env}
