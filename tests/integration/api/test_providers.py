"""A tenant's keys of model providers over the API: tried, never returned, visible to their tenant only."""

from __future__ import annotations

from tests.support.api import Caller
from tests.support.provider_server import KEY, ProviderServer


def test_an_owner_manages_keys(
    owner: Caller, viewer: Caller, outsider: Caller, provider: ProviderServer
) -> None:
    payload = {"key": KEY, "base_url": provider.base_url, "model": "small-chat"}
    assert viewer.send("put", "/providers/openai", payload).status_code == 403
    response = owner.send("put", "/providers/openai", payload)
    assert response.status_code == 200, response.content
    assert KEY not in response.content.decode()
    made = response.json()
    assert (made["key_end"], made["models"]) == (KEY[-4:], ["large-chat", "small-chat"])
    assert viewer.get("/providers").json()["items"] == [made]
    assert viewer.get("/default-model").json() == {"model": "openai/small-chat"}
    assert outsider.get("/providers").json()["items"] == []
    assert outsider.delete("/providers/openai").status_code == 404
    assert owner.post("/providers/openai/test").json()["models"] == made["models"]
    assert owner.send("put", "/default-model", {"model": "openai/large-chat"}).status_code == 200
    assert owner.delete("/providers/openai").status_code == 200
    assert owner.get("/default-model").json() == {"model": ""}
    assert owner.post("/providers/openai/test").status_code == 404


def test_a_wrong_key_is_refused_unquoted(owner: Caller, provider: ProviderServer) -> None:
    wrong = "sk-wrong-0123456789abcdef"
    refused = owner.send("put", "/providers/openai", {"key": wrong, "base_url": provider.base_url})
    assert refused.status_code == 422
    assert wrong not in refused.content.decode()
    too_long = owner.send("put", "/providers/openai", {"key": wrong * 100, "base_url": provider.base_url})
    assert too_long.status_code == 422
    assert wrong not in too_long.content.decode()
    assert owner.send("put", "/providers/elsewhere", {"key": KEY}).status_code == 422
    assert owner.send("put", "/default-model", {"model": "gpt-5"}).status_code == 422
    assert owner.get("/providers").json()["items"] == []
