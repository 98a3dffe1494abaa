"""Skills over the API."""

from __future__ import annotations

from typing import Any

import pytest

from apps.knowledge.services import skills
from tests.integration.skills.conftest import skill_text
from tests.support.api import Caller


def test_a_skill_is_stored_chosen_and_deleted(
    owner: Caller,
    viewer: Caller,
    outsider: Caller,
    vega: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = {"text": skill_text("lamps")}
    assert viewer.send("post", "/skills", body).status_code == 403
    assert viewer.send("post", "/check-skill", body).json() == {"name": "lamps", "version": "1"}
    added = owner.send("post", "/skills", body)
    assert (added.status_code, added.json()["text"]) == (201, skill_text("lamps"))
    assert owner.send("post", "/skills", body).status_code == 409
    changed = owner.send("put", "/skills", {"text": skill_text("lamps", "Dim them.")}).json()
    assert [version["is_current"] for version in changed["versions"]] == [True, False]

    active = f"/agents/{vega['id']}/skills"
    assert owner.get(active).json() == {"items": []}
    assert owner.send("put", active, {"names": ["ropes"]}).status_code == 404
    assert owner.send("put", active, {"names": list("abcdef")}).status_code == 409
    chosen = owner.send("put", active, {"names": ["lamps"]}).json()["items"]
    assert [skill["name"] for skill in chosen] == ["lamps"]
    assert owner.get("/skills/lamps").json()["users"] == [{"id": vega["id"], "name": "Vega"}]
    monkeypatch.setattr(skills, "USERS_SHOWN", 0)
    monkeypatch.setattr(skills, "VERSIONS_SHOWN", 1)
    bounded = owner.get("/skills/lamps").json()
    assert (bounded["agents"], bounded["users"]) == (1, [])
    shown = [version["digest"] for version in bounded["versions"]]
    assert (shown, bounded["versions_total"]) == ([changed["digest"]], 2)
    assert owner.send("delete", "/skills/lamps").status_code == 422
    assert outsider.get("/skills/lamps").status_code == 404
    assert outsider.get(active).status_code == 404

    owner.send("put", active, {"names": []})
    assert owner.send("delete", "/skills/lamps").json() == {"name": "lamps"}
    assert owner.get("/skills").json() == {"items": []}


def test_an_invalid_skill_is_refused_with_its_faults(owner: Caller) -> None:
    answer = owner.send("post", "/check-skill", {"text": "---\nname: Lamps\n---\n"})
    assert answer.status_code == 422
    assert "line 2, description: is required" in answer.json()["detail"]
