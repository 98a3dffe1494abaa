"""Policies of agents over HTTP."""

from __future__ import annotations

from typing import Any

from tests.support.api import Caller


def test_active_hours_with_an_offset_are_refused(owner: Caller, vega: dict[str, Any]) -> None:
    path = f"/agents/{vega['id']}/policy"
    refused = owner.send("patch", path, {"active_from": "10:00+02:00", "active_until": "12:00"})
    assert (refused.status_code, "time_zone names its zone" in refused.json()["detail"]) == (422, True)
    hours = {"active_from": "10:00", "active_until": "12:00", "time_zone": "Europe/Berlin"}
    assert owner.send("patch", path, hours).json()["active_from"] == "10:00:00"


def test_models_by_tier_are_stored_without_blanks_around_them(owner: Caller, vega: dict[str, Any]) -> None:
    changed = owner.send(
        "patch", f"/agents/{vega['id']}/policy", {"tier_models": {"standard": [" openai/large "]}}
    )
    assert changed.json()["tier_models"] == {"standard": ["openai/large"]}
