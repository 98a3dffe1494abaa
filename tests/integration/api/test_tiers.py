"""Trust tiers, calibration and drift over the API."""

from __future__ import annotations

from typing import Any

from tests.support.api import Caller


def test_a_tier_is_set_and_its_change_listed(
    owner: Caller, viewer: Caller, outsider: Caller, vega: dict[str, Any]
) -> None:
    path = f"/agents/{vega['id']}/tier"
    shown = owner.get(path).json()
    assert (shown["tier"], shown["score"], shown["parts"]) == ("probationary", None, [])
    assert viewer.send("put", path, {"tier": "trusted"}).status_code == 403
    assert outsider.get(path).status_code == 404
    assert owner.send("put", path, {"tier": "king"}).status_code == 422
    assert owner.send("put", path, {"tier": "trusted", "reason": "knows its work"}).json()["by_person"]
    (change,) = owner.get(f"{path}/changes").json()["items"]
    assert (change["before"], change["after"], change["reason"]) == (
        "probationary",
        "trusted",
        "knows its work",
    )


def test_a_confirmed_tier_is_audited_and_stays_as_old(owner: Caller, vega: dict[str, Any]) -> None:
    path = f"/agents/{vega['id']}/tier"
    before = owner.get(path).json()
    after = owner.send("put", path, {"tier": before["tier"], "reason": "knows its work"}).json()
    assert (after["by_person"], after["since"]) == (True, before["since"])
    (record,) = owner.get("/audit", agent_id=vega["id"], action="trust.changed").json()["items"]
    assert record["message"] == "Vega stays probationary by a person's decision: knows its work"
    assert owner.get(f"{path}/changes").json()["items"] == []


def test_calibration_and_drift_of_a_new_agent_are_empty(owner: Caller, vega: dict[str, Any]) -> None:
    assert owner.get(f"/agents/{vega['id']}/calibration").json() == {"items": []}
    drift = owner.get(f"/agents/{vega['id']}/drift").json()
    assert drift["share"] == 0
    assert all(part["change"] == "same" for part in drift["values"]["parts"])
