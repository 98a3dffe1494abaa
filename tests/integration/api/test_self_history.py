"""The self of an agent over the API: its knowledge, growth, versions and rollback."""

from __future__ import annotations

from typing import Any

from tests.support.api import Caller


def test_a_self_is_changed_compared_and_rolled_back(
    owner: Caller, viewer: Caller, outsider: Caller, vega: dict[str, Any]
) -> None:
    own = f"/agents/{vega['id']}"
    trait = owner.post(f"{own}/aspects", {"content": "patient", "kind": "trait", "strength": 0.8}).json()
    revised = owner.send("patch", f"{own}/aspects/{trait['id']}", {"strength": 0.3})
    assert (revised.status_code, revised.json()["strength"]) == (200, 0.3)
    shown = viewer.get(f"{own}/self").json()
    assert (shown["version"], shown["traits"][-1]["name"]) == (3, "patient")
    assert "- patient (low)\n" in shown["system_prompt"]
    log = viewer.get(f"{own}/self/changes", limit=2).json()
    assert [change["version"] for change in log] == [3, 2]
    assert [version["number"] for version in viewer.get(f"{own}/self/versions").json()] == [3, 2, 1]
    diff = viewer.get(f"{own}/self/diff", earlier=2).json()
    assert (diff["later"], diff["differences"][0]["difference"]) == (3, "changed")
    payload = {"version": 1, "parts": ["aspect"], "reason": "too bold"}
    assert viewer.post(f"{own}/self/rollback", payload).status_code == 403
    assert outsider.post(f"{own}/self/rollback", payload).status_code == 404
    undone = owner.post(f"{own}/self/rollback", payload).json()
    assert (undone["version"], undone["differences"][0]["name"]) == (4, "patient")
    assert "patient" not in viewer.get(f"{own}/self").json()["system_prompt"]
    assert owner.post(f"{own}/self/rollback", {"version": 9}).status_code == 404
    assert owner.post(f"{own}/self/rollback", {"version": 1, "parts": []}).status_code == 422
    assert outsider.get(f"{own}/self/versions").status_code == 404
