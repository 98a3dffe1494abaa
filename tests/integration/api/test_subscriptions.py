"""Subscriptions of agents to signals over the API."""

from __future__ import annotations

from typing import Any

from tests.support.api import Caller


def test_a_subscription_is_added_listed_and_ended(
    owner: Caller, viewer: Caller, outsider: Caller, vega: dict[str, Any]
) -> None:
    path = f"/agents/{vega['id']}/subscriptions"
    body = {"names": ["memory.goal_*"], "source": "self"}
    assert owner.get(path).json() == {"items": []}
    assert viewer.send("post", path, body).status_code == 403
    assert owner.send("post", path, {**body, "source": "shared"}).status_code == 422
    assert owner.send("post", path, {**body, "source": "all"}).status_code == 422
    added = owner.send("post", path, body)
    assert (added.status_code, added.json()["source"], added.json()["peer_id"]) == (201, "self", None)
    assert owner.get(path).json()["items"] == [added.json()]
    assert outsider.get(path).status_code == 404
    address = f"{path}/{added.json()['id']}"
    assert outsider.send("delete", address).status_code == 404
    assert owner.send("delete", address).json() == added.json()
    assert owner.send("delete", address).status_code == 404
