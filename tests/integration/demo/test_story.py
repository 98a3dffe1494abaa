"""`arbor demo`: its output, its JSON, and its errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from threading import Thread
from typing import Any

import pytest
from django.conf import settings

from apps import queues
from apps.agents.models import Agent, BuiltinTemplate
from apps.audit.models import AuditEvent
from apps.heartbeats.services import inline
from apps.heartbeats.services.calls import calls
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.services import all_slugs, create_tenant, tenant_by_slug
from arbor.errors import ModelUnavailable
from arbor.models.ports import ScriptedModel
from config.cli import demo
from tests.integration.cli.conftest import Arbor
from tests.integration.heartbeats.conftest import REST
from tests.support.threads import in_own_connection


@pytest.fixture
def prepared(arbor: Arbor, templates: None) -> Arbor:
    """Return the command line on a prepared database."""
    return arbor


def remaining_agents(slug: str = "demo") -> list[str]:
    with tenant_transaction(tenant_by_slug(slug).id):
        return list(Agent.objects.values_list("name", flat=True))


def script(monkeypatch: pytest.MonkeyPatch, *lines: Any) -> None:
    """Replace each model by a scripted language model."""
    model = ScriptedModel(*lines, repeat=True)
    monkeypatch.setattr(calls, "model_for", lambda _handle: model)
    monkeypatch.setattr(settings, "ARBOR_DEFAULT_MODEL", "openai/scripted")


def test_the_story_runs_step_by_step_and_leaves_no_agent(prepared: Arbor) -> None:
    result = prepared("demo")
    assert result.code == 0
    steps = [
        *("A new agent", "A conversation", "A goal", "3 heartbeats", "The trace", "Recall"),
        *("What maintenance makes of it", "What changed"),
    ]
    places = [result.out.index(f"{number} · {step}") for number, step in enumerate(steps, start=1)]
    assert places == sorted(places)
    assert "reflex: no language model" in result.out
    assert "no workers run" in result.out
    assert "A hundred and forty-seven seals" in result.out
    assert "is deleted again" in result.out
    assert remaining_agents() == []


def test_the_story_is_printed_as_json(prepared: Arbor) -> None:
    story = prepared("demo", "--json").json
    assert story["ingested"] == {"file": "conversation.jsonl", "stored": 74, "sessions": 8, "bad": 0}
    assert [heartbeat["status"] for heartbeat in story["heartbeats"]] == ["done", "done", "done"]
    assert [heartbeat["number"] for heartbeat in story["heartbeats"]] == [1, 2, 3]
    assert story["heartbeats"][0]["mode"] == "plan_execution"
    assert (story["before"]["heartbeats"], story["after"]["heartbeats"]) == (0, 3)
    assert story["after"]["goals"]["Know the story of the Halcyon"] == "completed, 100%"
    assert story["after"]["memories"]["episodic"] == 77
    lungs = story["recalled"]["What is wrong with Aurelio's lungs?"]
    assert "only a bronchitis" in lungs[0]["content"]
    assert abs(sum(lungs[0]["components"].values()) - lungs[0]["score"]) < 0.001
    assert story["grown"]["episodes"] >= 8
    assert all(cluster["size"] >= 3 and cluster["clearest"] for cluster in story["grown"]["clusters"])
    assert story["grown"]["clusters"]


def test_the_agent_of_the_story_remains_on_request(prepared: Arbor) -> None:
    result = prepared("demo", "--keep")
    assert result.code == 0
    (name,) = remaining_agents()
    assert f"arbor agent trace {name} --tenant demo" in result.out
    assert prepared("agent", "trace", name, "--tenant", "demo").code == 0
    prepared("demo")
    assert remaining_agents() == [name]


def test_the_story_runs_in_a_tenant_on_request(prepared: Arbor) -> None:
    create_tenant(slug="acme", name="Acme")
    assert prepared("demo", "--tenant", "acme", "--json").json["tenant"] == "acme"
    assert all_slugs() == ["acme"]
    assert remaining_agents("acme") == []
    assert prepared("demo", "--tenant", "nowhere").code == 1


def test_the_story_is_audited(prepared: Arbor) -> None:
    prepared("demo")
    with tenant_transaction(tenant_by_slug("demo").id):
        actions = list(AuditEvent.objects.order_by("at").values_list("action", flat=True))
    assert actions == ["agent.created", "agent.started", "operator.act", "seed.exported", "agent.destroyed"]


def test_the_story_runs_with_a_language_model(prepared: Arbor, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, REST)
    result = prepared("demo")
    assert result.code == 0
    assert "model openai/scripted" in result.out
    assert "reflex" not in result.out
    assert "All is well." in result.out


def test_a_failed_heartbeat_is_reported_and_destroys_the_agent(
    prepared: Arbor, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, ModelUnavailable("the provider is down"))
    result = prepared("demo")
    assert result.code == 1
    assert "failed, ModelUnavailable: the provider is down" in result.out
    assert remaining_agents() == []


def test_an_interrupted_story_leaves_no_agent(prepared: Arbor, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run_heartbeat", interrupt)
    assert prepared("demo").code == 130
    assert remaining_agents() == []


def test_a_database_without_templates_says_how_to_start(arbor: Arbor) -> None:
    assert not BuiltinTemplate.objects.using(OPS).exists()
    result = arbor("demo", "--timeout", "300")
    assert result.code == 1
    assert "`make up` creates and runs everything" in result.err
    assert "`arbor prepare`" in result.err


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[queues.TaskMessage]]:
    """Execute each message at once in a thread of its own; return the executed messages."""
    published: list[queues.TaskMessage] = []
    workers: list[Thread] = []

    def publish_batched(messages: Iterable[queues.TaskMessage]) -> None:
        for message in messages:
            published.append(message)
            workers.append(in_own_connection(partial(inline._run, message)))

    monkeypatch.setattr(queues, "publish_batched", publish_batched)
    monkeypatch.setattr(demo, "fleet_is_live", lambda: True)
    yield published
    for worker in workers:
        worker.join(60)


def test_running_workers_execute_the_heartbeats(prepared: Arbor, fleet: list[queues.TaskMessage]) -> None:
    result = prepared("demo")
    assert result.code == 0
    assert "by the workers that run" in result.out
    # To start, to call the model, and to resume with its reply.
    assert len(fleet) == 9
    assert remaining_agents() == []
