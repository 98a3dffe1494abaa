"""Goals and their plans over HTTP."""

from __future__ import annotations

from typing import Any

from arbor.goals.plans import STEP_LENGTH
from arbor.goals.values import NOTE_LENGTH
from arbor.memory.relations import NOTE_LENGTH as RELATION_NOTE_LENGTH
from tests.support.api import Caller


def test_a_plan_is_drafted_started_and_listed_with_its_steps(owner: Caller, vega: dict[str, Any]) -> None:
    goal = owner.post(f"/agents/{vega['id']}/goals", {"title": "Map the harbour"}).json()
    plans = f"/agents/{vega['id']}/goals/{goal['id']}/plans"
    steps = [{"action": "recall", "description": "Remember the piers"}]

    boat = "a boat ".ljust(STEP_LENGTH, "x")
    drafted = owner.post(plans, {"steps": steps, "draft": True, "needs": [boat]})
    started = owner.post(f"{plans}/start", {}).json()
    met = owner.post(f"{plans}/met", {"dependency": boat}).json()
    listed = owner.get(plans).json()["items"]

    assert (drafted.status_code, drafted.json()["status"]) == (201, "draft")
    assert (started["status"], met["dependencies"], met["met"]) == ("active", [boat], [boat])
    assert [(step["position"], step["action"]) for step in listed[0]["steps"]] == [(1, "recall")]
    assert len(listed) == 1


def test_notes_are_as_long_as_those_of_the_agent(owner: Caller, vega: dict[str, Any]) -> None:
    path = f"/agents/{vega['id']}"
    goals = [owner.post(f"{path}/goals", {"title": title}).json()["id"] for title in ("Map", "Row")]
    source, target = ({"kind": "goal", "id": goal} for goal in goals)
    relation = {"source": source, "relation": "supports", "target": target}
    for method, address, body, longest in (
        ("patch", f"{path}/goals/{goals[0]}", {}, NOTE_LENGTH),
        ("post", f"{path}/relations", relation, RELATION_NOTE_LENGTH),
    ):
        notes = ("x" * longest, "x" * (longest + 1))
        codes = [owner.send(method, address, {**body, "note": note}).status_code for note in notes]
        assert codes in ([200, 422], [201, 422]), address
