"""Tokens that a model counts for an estimated one: learnt from calls, used by prompts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.calls.models import LedgerEntry, TokenRatio
from apps.calls.services.ledger import estimated_tokens
from apps.calls.services.token_ratios import learn_token_ratios, read_token_ratios
from apps.contacts.services.chat import exchange_turns, open_session
from apps.heartbeats.services.calls.calls import execute_call
from apps.tenants.scope import tenant_transaction
from arbor.heartbeat.situation import Situation
from arbor.models.ports import ModelReply, ModelRequest, ScriptedModel, TextSink
from arbor.models.usage import Usage
from config.cli.checks.finding import CheckVerdict
from config.cli.checks.models import check_token_ratios
from tests.integration.heartbeats.conftest import REST, heartbeats_of, replay_of, run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script

MODEL = "openai/test"


def script_ratio(
    monkeypatch: pytest.MonkeyPatch, scripted: Script, *, ratio: float, answer: str = REST
) -> ScriptedModel:
    """Replace each model by one that reports `ratio` times the estimate as the tokens of its input; return it."""
    model = scripted(answer, repeat=True)
    complete = model.complete

    def complete_with_usage(
        request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None
    ) -> ModelReply:
        usage = Usage(input_tokens=int(estimated_tokens(request) * ratio), output_tokens=10)
        return replace(complete(request, deadline_s=deadline_s, on_text=on_text), usage=usage)

    monkeypatch.setattr(model, "complete", complete_with_usage)
    return model


def ratios_of(agent: Agent) -> list[TokenRatio]:
    with tenant_transaction(agent.tenant_id):
        return list(TokenRatio.objects.all())


def window_of_last(agent: Agent) -> int | None:
    situation = Situation.model_validate(heartbeats_of(agent)[-1].situation)
    assert situation.terms is not None
    return situation.terms.window


def test_later_prompts_fit_by_what_the_provider_counted(
    fleet: Fleet, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ARBOR_MODEL_CONTEXT, settings.ARBOR_MODEL_MAX_TOKENS = 16_384, 2_000
    model = script_ratio(monkeypatch, scripted, ratio=2.0)
    for _ in range(3):
        run_heartbeat(fleet, agent)
    assert window_of_last(agent) == 16_384
    with tenant_transaction(agent.tenant_id):
        entry = LedgerEntry.objects.latest("at")
    assert entry.input_tokens == entry.estimated_tokens * 2 > 0

    assert learn_token_ratios() == 1
    assert learn_token_ratios() == 0
    (learnt,) = ratios_of(agent)
    assert (round(learnt.ratio, 2), learnt.calls) == (2.0, 3)
    run_heartbeat(fleet, agent)

    assert window_of_last(agent) == 8_192
    # The limit of the reply is in the model's own tokens.
    assert model.requests[-1].max_tokens == 2_000
    assert len(model.requests[-1].system) < len(model.requests[0].system)
    last = heartbeats_of(agent)[-1]
    assert replay_of(last).differences == []


def test_a_replay_keeps_the_ratio_of_its_time(
    fleet: Fleet, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_ratio(monkeypatch, scripted, ratio=2.5)
    for _ in range(3):
        run_heartbeat(fleet, agent)
    first = heartbeats_of(agent)[0]
    learn_token_ratios()

    assert replay_of(first).differences == []


def test_conversations_use_the_ratio_too(
    fleet: Fleet, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ARBOR_MODEL_CONTEXT = 6_000
    with tenant_transaction(agent.tenant_id):
        session = open_session(agent_id=agent.id, person="cli:nora")

    def ask(text: str) -> ModelRequest:
        exchange_turns(tenant_id=agent.tenant_id, session_id=session.id, text=text, execute=execute_call)
        return model.requests[-1]

    answer = json.dumps({"thinking": "", "reply": "Low water is at six. " * 30})
    model = script_ratio(monkeypatch, scripted, ratio=1.8, answer=answer)
    for n in range(5):
        before = ask(f"{n}: " + "when is low water? " * 40)
    learn_token_ratios()
    after = ask("5: " + "when is low water? " * 40)

    assert [round(row.ratio, 1) for row in ratios_of(agent)] == [1.8]
    assert estimated_tokens(after) * 1.8 <= 6_000 - 1_500
    assert estimated_tokens(after) < estimated_tokens(before)


@pytest.mark.parametrize(("reported", "stored"), [(50.0, 3.0), (0.01, 0.8), (1.3, 1.3)])
def test_a_ratio_is_bounded(
    fleet: Fleet,
    agent: Agent,
    scripted: Script,
    monkeypatch: pytest.MonkeyPatch,
    reported: float,
    stored: float,
) -> None:
    script_ratio(monkeypatch, scripted, ratio=reported)
    for _ in range(3):
        run_heartbeat(fleet, agent)
    learn_token_ratios()

    assert [round(row.ratio, 2) for row in ratios_of(agent)] == [stored]
    finding = check_token_ratios()
    assert f"counts {stored:.2f} for 1 (3 calls)" in finding.detail
    assert (finding.verdict is CheckVerdict.WARN) is (stored == 3.0)


def test_two_calls_or_unreported_counts_teach_nothing(
    fleet: Fleet, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_ratio(monkeypatch, scripted, ratio=2.0)
    run_heartbeat(fleet, agent)
    run_heartbeat(fleet, agent)
    assert learn_token_ratios() == 0
    script_ratio(monkeypatch, scripted, ratio=0.0)
    run_heartbeat(fleet, agent)
    assert learn_token_ratios() == 0
    assert read_token_ratios() == []
    assert check_token_ratios().detail == "no model has reported its counts yet"
