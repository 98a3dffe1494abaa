"""Deliveries at hooks: verified, counted once, refused without an oracle, and perceived."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.agents.models import Agent, HeartbeatSchedule, Percept, PerceptKind
from apps.api import hook_views
from apps.audit.models import AuditEvent
from apps.contacts.models import Hook, HookDelivery
from apps.contacts.services import hook_reception
from apps.contacts.services.hooks import (
    HookWithSecret,
    NewHook,
    create_hook,
    delete_hook,
    rotate_hook_secret,
    switch_hook,
)
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import tenant_transaction
from arbor.contacts.hooks import HOOKS_PATH, HookKind, hook_key
from arbor.ids import uuid7
from arbor.rate_limits import RateLimiter
from tests.integration.contacts.conftest import make_agent
from tests.support.hook_requests import GITHUB_BODIES, GithubSender, hex_signature, standard_request
from tests.support.rows import reload

MAPPING = {
    "event": "{type}",
    "title": "{data.title}",
    "text": "{/data/lines/0}",
    "sender": "{from}",
    "importance": "{data.level}",
}
BODY = {
    "type": "alarm.raised",
    "from": "weir 3",
    "data": {"title": "High water", "lines": ["2.1 m"], "level": "critical"},
}


@pytest.fixture
def ada(tenant: Tenant) -> Agent:
    """Return an active agent."""
    return make_agent(tenant)


def new_hook(agent: Agent, **fields: Any) -> HookWithSecret:
    """Create a hook of the agent, and return it with its secret."""
    with tenant_transaction(agent.tenant_id):
        return create_hook(NewHook(**{"name": "ops", "agent_id": agent.id, **fields}), actor="test")


def github_hook(agent: Agent, **fields: Any) -> tuple[Hook, GithubSender]:
    """Create a hook for GitHub; return it, and a sender that has its secret."""
    made = new_hook(agent, kind=HookKind.GITHUB, **fields)
    return made.hook, GithubSender(secret=made.secret)


def percepts_of(agent: Agent) -> list[Percept]:
    """Return the percepts of the agent, oldest first."""
    with tenant_transaction(agent.tenant_id):
        return list(Percept.objects.filter(agent_id=agent.id).order_by("at"))


def deliveries_of(hook: Hook) -> list[HookDelivery]:
    """Return the deliveries at the hook, oldest first."""
    with tenant_transaction(hook.tenant_id):
        return list(HookDelivery.objects.filter(hook_id=hook.id).order_by("at"))


def test_a_delivery_of_github_becomes_a_percept(ada: Agent) -> None:
    hook, github = github_hook(ada)
    response = github.request("issues").post(hook.key)
    assert response.status_code == 202, response.content
    (percept,) = percepts_of(ada)
    (delivery,) = deliveries_of(hook)
    answer = response.json()
    assert answer == {"delivery_id": str(delivery.id), "status": "perceived", "repeated": False}
    assert (percept.kind, percept.urgent) == (PerceptKind.WEBHOOK, False)
    assert percept.content == (
        "Issue opened in octo-org/river: #7 The weir leaks\nSince the thaw, water passes below the gate."
    )
    assert percept.detail == {
        "hook": "ops",
        "event": "issues.opened",
        "from": "octocat",
        "link": "https://github.com/octo-org/river/issues/7",
        "importance": 0.5,
    }
    assert (delivery.status, delivery.event, delivery.percept_id) == (
        "perceived",
        "issues.opened",
        percept.id,
    )
    assert delivery.delivery_id.startswith("72d3162e-cc78")
    assert json.loads(delivery.body)["issue"]["number"] == 7
    with tenant_transaction(ada.tenant_id):
        assert AuditEvent.objects.filter(actor="hook:ops", agent_id=ada.id).count() == 1


@pytest.mark.parametrize("event", [*GITHUB_BODIES, "star"])
def test_every_event_of_github_is_perceived(ada: Agent, event: str) -> None:
    hook, github = github_hook(ada)
    # Forms are GitHub's default content type.
    assert github.request(event, form=True).post(hook.key).json()["status"] == "perceived"
    assert percepts_of(ada)[0].content


def test_a_mapping_turns_json_into_a_percept(ada: Agent) -> None:
    made = new_hook(ada, mapping=MAPPING)
    assert standard_request(made.secret, BODY).post(made.hook.key).status_code == 202
    (percept,) = percepts_of(ada)
    assert percept.content == "High water\n2.1 m"
    assert percept.detail["from"] == "weir 3"
    assert (percept.detail["event"], percept.detail["importance"]) == ("alarm.raised", 1.0)


def test_a_delivery_with_nul_characters_is_perceived(ada: Agent) -> None:
    made = new_hook(ada, mapping=MAPPING)
    body = {"type": "al\0arm", "from": "we\0ir", "data": {"title": "High\0water"}}
    assert standard_request(made.secret, body).post(made.hook.key).status_code == 202
    assert "\0" not in deliveries_of(made.hook)[0].event


def test_a_named_header_signs_too(ada: Agent) -> None:
    made = new_hook(ada, signature_header="X-Weir-Signature", secret="weir-3-shared-secret")
    assert made.secret == "weir-3-shared-secret"
    body = json.dumps(BODY)
    for prefix, status in (("", 202), ("sha256=", 200), ("sha1=", 401)):
        signature = f"{prefix}{hex_signature(made.secret, body.encode())}"
        response = Client().post(
            f"{HOOKS_PATH}{made.hook.key}",
            data=body,
            content_type="application/json",
            headers={"X-Weir-Signature": signature},
        )
        assert response.status_code == status


def test_refusals_are_alike_and_have_their_reason_in_the_row(ada: Agent, other_tenant: Tenant) -> None:
    made = new_hook(ada)
    right = standard_request(made.secret, BODY)
    unknown = [hook_key(ada.tenant_id, uuid7()), hook_key(other_tenant.id, made.hook.id), "x", "ä" * 43]
    answers = [right.post(key) for key in unknown]
    wrong = [
        standard_request("whsec_MDEyMzQ1Njc4OWFiY2RlZg==", BODY),
        standard_request(made.secret, BODY, at=time.time() - 400),
        standard_request(made.secret, BODY, at=time.time() + 400),
        GithubSender(secret=made.secret).request("push"),
    ]
    answers += [request.post(made.hook.key) for request in wrong]
    answers.append(right.post(made.hook.key, {"webhook-signature": "v1,x v2,y"}))
    answers.append(right.post(made.hook.key, {"webhook-id": "msg_2"}))
    bodies = [{**json.loads(answer.content), "instance": "", "request_id": ""} for answer in answers]
    assert {answer.status_code for answer in answers} == {401}
    assert all(body == bodies[0] for body in bodies)
    assert percepts_of(ada) == []
    assert deliveries_of(made.hook) == []
    # The operator sees the first reason; the following ones within seconds are not stored.
    row = reload(made.hook)
    assert row.refused_at is not None
    assert "webhook-signature" in row.last_refusal


def test_the_refusal_of_an_old_delivery_names_its_age(ada: Agent) -> None:
    made = new_hook(ada)
    assert standard_request(made.secret, BODY, at=time.time() - 900).post(made.hook.key).status_code == 401
    assert "15 minutes from now" in reload(made.hook).last_refusal


def test_a_repeated_delivery_counts_once(ada: Agent) -> None:
    made = new_hook(ada, mapping=MAPPING)
    request = standard_request(made.secret, BODY)
    first = request.post(made.hook.key)
    repeated = standard_request(made.secret, {**BODY, "type": "other"}).post(made.hook.key)
    assert (first.status_code, repeated.status_code) == (202, 200)
    assert repeated.json() == {**first.json(), "repeated": True}
    assert len(percepts_of(ada)) == 1
    (delivery,) = deliveries_of(made.hook)
    assert delivery.attempts == 2
    hook, github = github_hook(ada, name="github")
    sent = github.request("push")
    # GitHub signs no id: the same body under another id, or as another event, is a replay.
    for status, headers in (
        (202, {}),
        (200, {"X-GitHub-Delivery": "other"}),
        (200, {"X-GitHub-Event": "issues"}),
    ):
        assert sent.post(hook.key, headers).status_code == status
    assert len(percepts_of(ada)) == 2


def test_unwanted_events_are_logged_only(ada: Agent) -> None:
    hook, github = github_hook(ada, events=["issues.opened", "pull_request"])
    sent = [
        github.request("issues"),
        github.request("issues", action="closed"),
        github.request("pull_request"),
        github.request("push"),
    ]
    statuses = [request.post(hook.key).json()["status"] for request in sent]
    assert statuses == ["perceived", "ignored", "perceived", "ignored"]
    assert len(percepts_of(ada)) == 2
    assert [delivery.status for delivery in deliveries_of(hook)] == statuses


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"{", "not JSON"),
        (b"", "empty"),
        (b"[" * 20_000, "not JSON"),
        (b'{"a": "\\ud800"}', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"type": "x"}', "neither a title nor a text; title: the body has no data.title"),
    ],
)
def test_a_body_without_a_message_is_refused(ada: Agent, body: bytes, fault: str) -> None:
    made = new_hook(ada, mapping=MAPPING)
    response = standard_request(made.secret, body).post(made.hook.key)
    (delivery,) = deliveries_of(made.hook)
    assert response.status_code == 422
    assert fault in response.json()["detail"]
    assert (delivery.status, delivery.percept_id) == ("failed", None)
    assert percepts_of(ada) == []


@pytest.mark.parametrize(
    "body", [b'{"data": {"title": {}, "lines": "0"}}', b'{"data": {"title": "nul \\u0000 here"}}']
)
def test_missing_parts_of_a_message_are_logged(ada: Agent, body: bytes) -> None:
    made = new_hook(ada, mapping=MAPPING)
    response = standard_request(made.secret, body).post(made.hook.key)
    assert response.status_code == 202, response.content
    assert "the body has no" in deliveries_of(made.hook)[0].error


def test_a_failed_delivery_succeeds_once_the_mapping_fits(ada: Agent) -> None:
    made = new_hook(ada, mapping=MAPPING)
    request = standard_request(made.secret, {"type": "x"})
    assert request.post(made.hook.key).status_code == 422
    with tenant_transaction(ada.tenant_id):
        Hook.objects.update(mapping={"title": "{type}"})
    assert request.post(made.hook.key).status_code == 202
    (delivery,) = deliveries_of(made.hook)
    assert (delivery.status, delivery.attempts, delivery.error) == ("perceived", 2, "")


def test_a_failed_delivery_that_is_corrected_keeps_the_corrected_body(ada: Agent) -> None:
    made = new_hook(ada, mapping=MAPPING)
    assert standard_request(made.secret, b"{").post(made.hook.key).status_code == 422
    assert standard_request(made.secret, BODY).post(made.hook.key).status_code == 202
    (delivery,) = deliveries_of(made.hook)
    assert (delivery.status, json.loads(delivery.body)) == ("perceived", BODY)


def test_a_huge_body_is_refused(ada: Agent, settings: Any) -> None:
    settings.ARBOR_HOOK_BODY_BYTES = 2_000
    made = new_hook(ada)
    assert standard_request(made.secret, {"text": "x" * 2_000}).post(made.hook.key).status_code == 413
    assert deliveries_of(made.hook) == []


def test_long_texts_are_cut(ada: Agent) -> None:
    made = new_hook(ada, mapping={"title": "{t}", "text": "{t}", "sender": "{t}", "importance": "{t}"})
    assert standard_request(made.secret, {"t": "wide " * 20_000}).post(made.hook.key).status_code == 202
    (percept,) = percepts_of(ada)
    assert len(percept.content) <= 6_301
    assert "importance: 0 to 1" in deliveries_of(made.hook)[0].error


def test_an_important_delivery_brings_the_heartbeat_forward(ada: Agent) -> None:
    made = new_hook(ada, mapping=MAPPING, urgent_from=0.8)
    mild = {**BODY, "data": {"title": "Low water", "level": "low"}}
    with tenant_transaction(ada.tenant_id):
        due = HeartbeatSchedule.objects.get(agent_id=ada.id).next_due_at + timedelta(hours=5)
        HeartbeatSchedule.objects.update(next_due_at=due)
    standard_request(made.secret, mild, message_id="msg_a").post(made.hook.key)
    with tenant_transaction(ada.tenant_id):
        assert HeartbeatSchedule.objects.get(agent_id=ada.id).next_due_at == due
    standard_request(made.secret, BODY, message_id="msg_b").post(made.hook.key)
    assert [percept.urgent for percept in percepts_of(ada)] == [False, True]
    with tenant_transaction(ada.tenant_id):
        assert HeartbeatSchedule.objects.get(agent_id=ada.id).next_due_at < due


def test_a_hook_that_is_off_or_deleted_receives_nothing(ada: Agent) -> None:
    made = new_hook(ada)
    request = standard_request(made.secret, BODY)
    with tenant_transaction(ada.tenant_id):
        switch_hook(hook_id=made.hook.id, active=False, actor="test")
    assert request.post(made.hook.key).status_code == 403
    assert "disabled" in reload(made.hook).last_refusal
    with tenant_transaction(ada.tenant_id):
        switch_hook(hook_id=made.hook.id, active=True, actor="test")
    assert request.post(made.hook.key).status_code == 202
    Tenant.objects.filter(id=ada.tenant_id).using("owner").update(status=TenantStatus.SUSPENDED)
    assert request.post(made.hook.key).status_code == 403
    Tenant.objects.filter(id=ada.tenant_id).using("owner").update(status=TenantStatus.ACTIVE)
    with tenant_transaction(ada.tenant_id):
        delete_hook(hook_id=made.hook.id, actor="test")
    assert request.post(made.hook.key).status_code == 401
    assert len(percepts_of(ada)) == 1


def test_the_previous_secret_is_valid_for_a_while(ada: Agent) -> None:
    made = new_hook(ada)
    with tenant_transaction(ada.tenant_id):
        rotated = rotate_hook_secret(hook_id=made.hook.id, actor="test")
    assert rotated.secret != made.secret
    for number, secret in enumerate((made.secret, rotated.secret)):
        sent = standard_request(secret, BODY, message_id=f"msg_{number}")
        assert sent.post(made.hook.key).status_code == 202
    with tenant_transaction(ada.tenant_id):
        Hook.objects.update(previous_until=reload(made.hook).created_at)
    assert standard_request(made.secret, BODY, message_id="late").post(made.hook.key).status_code == 401
    with tenant_transaction(ada.tenant_id):
        latest = rotate_hook_secret(hook_id=made.hook.id, actor="test", overlap=timedelta(0))
    assert standard_request(rotated.secret, BODY, message_id="x").post(made.hook.key).status_code == 401
    assert standard_request(latest.secret, BODY, message_id="y").post(made.hook.key).status_code == 202


def test_a_hook_has_a_limit_a_minute(ada: Agent, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_views, "limiter", RateLimiter(clock=lambda: 0.0))
    settings.ARBOR_HOOK_PER_MINUTE = 2
    made = new_hook(ada)
    statuses = []
    # Refused requests do not use up the limit of the hook's own sender.
    for number in range(3):
        standard_request("whsec_" + "A" * 24, BODY).post(made.hook.key)
        response = standard_request(made.secret, BODY, message_id=f"msg_{number}").post(made.hook.key)
        statuses.append(response.status_code)
    assert statuses == [202, 202, 429]
    assert int(response["Retry-After"]) == 30
    assert len(deliveries_of(made.hook)) == 2


def test_an_agent_has_a_limit_of_pending_deliveries(ada: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_reception, "MAX_PENDING", 1)
    made = new_hook(ada)
    assert standard_request(made.secret, BODY, message_id="a").post(made.hook.key).status_code == 202
    response = standard_request(made.secret, BODY, message_id="b").post(made.hook.key)
    assert (response.status_code, response["Retry-After"]) == (429, "600")
    # The delivery is not stored, so that its sender repeats it.
    assert len(deliveries_of(made.hook)) == 1


def test_other_methods_are_not_allowed(ada: Agent) -> None:
    response = Client().get(f"{HOOKS_PATH}{new_hook(ada).hook.key}")
    assert (response.status_code, response["Allow"]) == (405, "POST")


def test_a_delivery_takes_few_statements(ada: Agent) -> None:
    made = new_hook(ada)
    with CaptureQueriesContext(connection) as queries:
        assert standard_request(made.secret, BODY).post(made.hook.key).status_code == 202
    assert len(queries) == 12, [query["sql"][:100] for query in queries.captured_queries]
    with CaptureQueriesContext(connection) as queries:
        assert standard_request("whsec_" + "A" * 24, BODY).post(made.hook.key).status_code == 401
    assert len(queries) == 4, [query["sql"][:100] for query in queries.captured_queries]
