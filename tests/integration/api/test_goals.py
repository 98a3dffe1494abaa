"""Goals and their plans over HTTP."""

from __future__ import annotations

from typing import Any

from tests.support.api import Caller


def test_a_plan_is_drafted_started_and_listed_with_its_steps(owner: Caller, vega: dict[str, Any]) -> None:
    goal = owner.post(f"/agents/{vega['id']}/goals", {"title": "Map the harbour"}).json()
    plans = f"/agents/{vega['id']}/goals/{goal['id']}/plans"
    steps = [{"action": "recall", "description": "Remember the piers"}]

    drafted = owner.post(plans, {"steps": steps, "draft": True, "needs": ["a boat"]})
    started = owner.post(f"{plans}/start", {}).json()
    met = owner.post(f"{plans}/met", {"dependency": "a boat"}).json()
    listed = owner.get(plans).json()["items"]

    assert (drafted.status_code, drafted.json()["status"]) == (201, "draft")
    assert (started["status"], met["dependencies"], met["met"]) == ("active", ["a boat"], ["a boat"])
    assert [(step["position"], step["action"]) for step in listed[0]["steps"]] == [(1, "recall")]
    assert len(listed) == 1
