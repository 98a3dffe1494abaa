"""The closing panel of `arbor up`: addresses, password and model."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from config.cli.up import PanelSummary, panel


def panel_text(**changes: Any) -> str:
    values: dict[str, Any] = {
        "web_url": "http://127.0.0.1:8001/",
        "flower_url": "http://127.0.0.1:5555/",
        "operator": "operator",
        "password": None,
        "password_file": Path("/data/secrets/operator_password"),
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
    assert "kept in /data/secrets/operator_password" in panel_text()


def test_the_panel_warns_that_no_language_model_is_configured() -> None:
    text = panel_text(model="reflex/policy")
    assert "no language model" in text
    assert "ANTHROPIC_API_KEY" in text
    assert "no language model" not in panel_text()
