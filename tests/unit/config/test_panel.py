"""The closing panel of `arbor up`: addresses, password and model; and the secrets that its log masks."""

from __future__ import annotations

import stat
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from config.cli.installation import up
from config.cli.installation.up import PanelSummary, panel
from config.environment import secret_folder
from config.secrets import SecretName, new_master_key, write_unfinished
from config.supervisor.run_folder import RunFolder, write_private
from tests.unit.config.builders import installation_plan


def panel_text(**changes: Any) -> str:
    values: dict[str, Any] = {
        "urls": {"web": "http://127.0.0.1:8001/", "flower": "http://127.0.0.1:5555/"},
        "operator": "operator",
        "password": None,
        "password_file": Path("/data/secrets/operator_password"),
        "password_known": True,
        "model": "openai/gpt-5-mini",
        "agents": 6,
        "tenants": 2,
        "ready_in_s": 3.21,
    }
    stream = StringIO()
    Console(file=stream, width=200).print(panel(PanelSummary(**{**values, **changes})))
    return stream.getvalue()


def test_the_panel_shows_addresses_and_start_time() -> None:
    text = panel_text()
    assert "http://127.0.0.1:8001/" in text
    assert "http://127.0.0.1:5555/" in text
    assert "ready in 3.2 s" in text
    assert "6 of 2 tenants" in text


def test_a_new_password_is_announced_as_shown_once() -> None:
    text = panel_text(password="k7wd-3nqp-x8vm-f2hs")
    assert "k7wd-3nqp-x8vm-f2hs" in text
    assert "shown only now" in text


def test_a_known_password_is_replaced_by_the_path_of_its_file() -> None:
    assert "stored in /data/secrets/operator_password" in panel_text()


def test_an_account_of_another_machine_has_no_password_file_here() -> None:
    text = panel_text(password_known=False)
    assert "operator_password" not in text
    assert "where it was created" in text


@pytest.mark.parametrize("database", ["", "postgres://db.internal/arbor"])
def test_only_an_embedded_database_gets_a_password_before_it_starts(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARBOR_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.delenv("ARBOR_OPERATOR_PASSWORD", raising=False)
    up._make_secrets()
    assert secret_folder().file(SecretName.OPERATOR_PASSWORD).exists() is not bool(database)


def test_the_panel_warns_that_no_language_model_is_configured() -> None:
    text = panel_text(model="reflex/policy")
    assert "no language model" in text
    assert "ANTHROPIC_API_KEY" in text
    assert "no language model" not in panel_text()


def test_the_log_masks_keys_in_files_but_not_the_files_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    monkeypatch.delenv("ARBOR_MASTER_KEY", raising=False)
    monkeypatch.setenv("ARBOR_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ARBOR_MASTER_KEY_FILE", str(file))
    keys = (new_master_key(), new_master_key())
    for path, key in zip((file, tmp_path / "key.other"), keys, strict=True):
        write_unfinished(path, key).replace(path)
    secrets = {"ARBOR_MASTER_KEY_FILE": str(file), "OPENAI_API_KEY": "sk-0123456789"}
    masked = up._secrets_to_mask(installation_plan(tmp_path, secrets=secrets))
    assert {*keys, "sk-0123456789"} <= masked
    assert str(file) not in masked


@pytest.mark.parametrize("terminal", [True, False])
def test_the_first_password_goes_to_a_terminal_only(
    terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARBOR_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    password = secret_folder().ensure(SecretName.OPERATOR_PASSWORD)
    run = RunFolder(tmp_path)
    run.make()
    report = {
        "operator": "operator",
        "operator_made": True,
        "model": "reflex/policy",
        "agents": 0,
        "tenants": 0,
    }
    write_private(run.prepared_file, report)
    summary = up._summary(installation_plan(tmp_path), 1.0)
    assert (summary.password == password) is terminal
    assert stat.S_IMODE(summary.password_file.stat().st_mode) == 0o600
    stream = StringIO()
    Console(file=stream, width=200).print(panel(summary))
    assert (password in stream.getvalue()) is terminal
