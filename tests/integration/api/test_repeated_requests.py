"""Idempotency keys, versions of resources, and the rate of requests."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.access.idempotency import RequestKey, begin_request, delete_expired_requests
from apps.access.models import ApiToken
from apps.agents.models import Agent
from apps.api import rates
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.rate_limits import RateLimiter
from tests.support.api import Caller


def test_a_repeated_request_is_executed_once(tenant: Tenant, owner: Caller, vega: dict[str, Any]) -> None:
    payload = {"name": "Lyra", "template": "Scout"}
    first, repeated = (owner.post("/agents", payload, Idempotency_Key="one") for _ in range(2))
    assert (first.status_code, repeated.status_code) == (201, 201)
    assert first.json() == repeated.json()
    assert repeated["Idempotent-Replayed"] == "true"
    with tenant_transaction(tenant.id):
        assert Agent.objects.filter(name="Lyra").count() == 1


def test_a_request_with_own_transactions_is_executed_once(owner: Caller, vega: dict[str, Any]) -> None:
    path, memory = f"/agents/{vega['id']}/memories", {"text": "The harbour opens at six."}
    first, repeated = (owner.post(path, memory, Idempotency_Key="one") for _ in range(2))
    assert (first.json()["new"], repeated.json()["new"]) == (True, True)
    assert owner.post(path, memory).json()["new"] is False


def test_a_key_of_another_request_is_refused(owner: Caller, vega: dict[str, Any]) -> None:
    owner.post("/agents", {"name": "Lyra", "template": "Scout"}, Idempotency_Key="one")
    other = owner.post("/agents", {"name": "Deneb", "template": "Scout"}, Idempotency_Key="one")
    assert (other.status_code, "new key" in other.json()["detail"]) == (422, True)


def test_a_failed_request_can_be_sent_again(owner: Caller, vega: dict[str, Any]) -> None:
    path = f"/agents/{vega['id']}/wake"
    assert owner.post(path, Idempotency_Key="one").status_code == 409
    owner.post(f"/agents/{vega['id']}/sleep")
    assert owner.post(path, Idempotency_Key="one").json()["status"] == "active"


def test_a_request_in_progress_is_a_conflict(tenant: Tenant, owner: Caller, vega: dict[str, Any]) -> None:
    with tenant_transaction(tenant.id):
        token = ApiToken.objects.get()
        begin_request(RequestKey(token_id=token.id, key="one", request_hash=_hash_of_pause(vega)))
    response = owner.post(f"/agents/{vega['id']}/pause", {}, Idempotency_Key="one")
    assert (response.status_code, response.json()["type"]) == (409, "urn:arbor:problem:request-underway")


def _hash_of_pause(vega: dict[str, Any]) -> bytes:
    """Return the hash of the request that pauses the agent."""
    return hashlib.sha256(f"POST /api/v1/agents/{vega['id']}/pause\n{{}}".encode()).digest()


def test_a_secret_is_not_stored_for_a_repeated_request(owner: Caller) -> None:
    first, repeated = (owner.post("/tokens", {"name": "ci"}, Idempotency_Key="one") for _ in range(2))
    assert (first.status_code, repeated.status_code) == (201, 409)
    assert "only once" in repeated.json()["detail"]


def test_stored_responses_expire(tenant: Tenant, owner: Caller) -> None:
    owner.post("/tokens", {"name": "ci"}, Idempotency_Key="one")
    assert delete_expired_requests(now=timezone.now() + timedelta(hours=23)) == 0
    assert delete_expired_requests(now=timezone.now() + timedelta(hours=25)) == 1


def test_a_known_version_is_not_sent_again(owner: Caller, vega: dict[str, Any]) -> None:
    path = f"/agents/{vega['id']}/policy"
    tag = owner.get(path)["ETag"]
    unchanged = owner.send("get", path, If_None_Match=tag)
    assert (unchanged.status_code, unchanged.content, unchanged["ETag"]) == (304, b"", tag)
    owner.send("patch", path, {"daily_heartbeats": 5})
    assert owner.send("get", path, If_None_Match=tag).status_code == 200


def test_a_version_that_a_proxy_made_weak_is_known(owner: Caller, vega: dict[str, Any]) -> None:
    # A proxy that compresses a response marks its ETag as weak.
    path = f"/agents/{vega['id']}/policy"
    weak = f"W/{owner.get(path)['ETag']}"
    assert owner.send("get", path, If_None_Match=weak).status_code == 304


def test_a_change_of_an_old_version_is_refused(owner: Caller, vega: dict[str, Any]) -> None:
    path = f"/agents/{vega['id']}/policy"
    tag = owner.get(path)["ETag"]
    assert owner.send("patch", path, {"daily_heartbeats": 5}, If_Match=tag).status_code == 200
    refused = owner.send("patch", path, {"daily_heartbeats": 6}, If_Match=tag)
    assert (refused.status_code, owner.get(path).json()["daily_heartbeats"]) == (412, 5)
    assert (
        owner.send("patch", path, {"daily_heartbeats": 6}, If_Match=owner.get(path)["ETag"]).status_code
        == 200
    )


def test_a_repeated_change_of_an_old_version_is_replayed(owner: Caller, vega: dict[str, Any]) -> None:
    path = f"/agents/{vega['id']}/goals"
    headers = {"Idempotency_Key": "one", "If_Match": owner.get(path)["ETag"]}
    first, repeated = (owner.post(path, {"title": "Map the harbour"}, **headers) for _ in range(2))
    assert (first.status_code, repeated.status_code) == (201, 201)
    assert (repeated.json(), repeated["Idempotent-Replayed"]) == (first.json(), "true")


def test_a_change_with_own_transactions_checks_its_version(owner: Caller) -> None:
    path, change = "/default-model", {"model": "reflex/policy"}
    tag = owner.get(path)["ETag"]
    assert owner.send("put", path, change, If_Match=tag).status_code == 200
    assert owner.send("put", path, {"model": ""}, If_Match=tag).status_code == 412
    assert owner.get(path).json() == change


@pytest.mark.parametrize("tag", ["abc", "", "W/abc"])
def test_an_unreadable_version_is_refused(owner: Caller, vega: dict[str, Any], tag: str) -> None:
    path = f"/agents/{vega['id']}/policy"
    refused = owner.send("patch", path, {"daily_heartbeats": 5}, If_Match=tag)
    assert (refused.status_code, owner.get(path).json()["daily_heartbeats"]) == (422, None)


def test_a_change_of_a_version_counts_as_one_request(
    owner: Caller, vega: dict[str, Any], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ARBOR_API_PER_MINUTE = 3
    monkeypatch.setattr(rates, "limiter", RateLimiter(clock=lambda: 0.0))
    path = f"/agents/{vega['id']}/policy"
    changed = owner.send("patch", path, {"daily_heartbeats": 5}, If_Match=owner.get(path)["ETag"])
    last = owner.get(path)
    assert (changed.status_code, last.status_code, last["RateLimit-Remaining"]) == (200, 200, "0")


def test_too_many_requests_are_refused(owner: Caller, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ARBOR_API_PER_MINUTE = 2
    monkeypatch.setattr(rates, "limiter", RateLimiter(clock=lambda: 0.0))
    answers = [owner.get("/token") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer["RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    assert (answers[-1]["Retry-After"], answers[-1]["RateLimit-Limit"]) == ("30", "2")
