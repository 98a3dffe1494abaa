"""OpenAI's protocol without its package: lists, and the shape of errors."""

from __future__ import annotations

from typing import Any

import pytest

from apps.api.openai import api as openai_routes
from tests.support.api import Caller


def get(caller: Caller, path: str) -> Any:
    return caller.client.get(f"/v1{path}", headers={"Authorization": f"Bearer {caller.token}"})


def test_a_long_list_says_that_there_is_more(
    owner: Caller, vega: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.post("/agents", {"name": "Lyra", "template": "Scout"})
    whole = get(owner, "/models").json()
    monkeypatch.setattr(openai_routes, "MOST_MODELS", 1)
    part = get(owner, "/models").json()

    assert ([model["id"] for model in whole["data"]], whole["has_more"]) == (["Lyra", "Vega"], False)
    assert ([model["id"] for model in part["data"]], part["has_more"]) == (["Lyra"], True)


def test_an_error_has_the_protocols_shape(owner: Caller) -> None:
    missing = get(owner, "/models/Nobody")
    refused = get(Caller(token="sk-nonsense"), "/models")

    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")
    assert missing["x-should-retry"] == "false"
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")
    assert refused["WWW-Authenticate"].startswith("Bearer")
