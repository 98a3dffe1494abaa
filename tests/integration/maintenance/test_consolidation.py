"""Concepts and importances of new memories: by rule or by a model, each memory once."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.calls.models import CallStatus
from apps.maintenance.services.consolidation import EXTRACT_BATCH, consolidate, maintain_episodes
from apps.maintenance.services.prompts import empty_prompts
from apps.memories.services.graph.concepts import memories_of_concept
from apps.memories.services.retention.archive import archive, purge
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import NewMemory
from arbor.models.ports import ModelRequest
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.integration.maintenance.maintenance_setup import (
    LONG_AGO,
    TALK,
    calls_of,
    close_and_settle,
    concepts_of,
    importance_of,
    ledger_of,
    move_into_past,
    remember_talk,
    run_all_tries,
    waiting_for,
)
from tests.integration.memories.conftest import at_once


def _reply_with_concepts(*names_by_memory: list[str]) -> str:
    return json.dumps(
        {
            "memories": [
                {"n": n, "concepts": [{"name": name, "strength": 0.8} for name in names]}
                for n, names in enumerate(names_by_memory, 1)
            ]
        }
    )


@pytest.fixture
def modelled(settings: Any) -> None:
    """Execute maintenance calls by the scripted model."""
    settings.ARBOR_MAINTENANCE_MODEL = "scripted/model"


def test_rules_extract_concepts_without_a_call(mind: Agent, fleet: Fleet) -> None:
    remember_talk(mind)
    assert len(waiting_for(mind, "unextracted")) == len(TALK)
    consolidate()
    assert waiting_for(mind, "unextracted") == set()
    assert (calls_of(mind), fleet.messages) == ([], [])
    assert {"Heron", "Lisbon"} <= concepts_of(mind)[TALK[0]]
    with tenant_transaction(mind.tenant_id):
        memories = memories_of_concept(agent_id=mind.id, name="heron")
    assert {memory.content for memory in memories} == {TALK[0], TALK[2], TALK[3]}


def test_a_memory_without_concepts_is_processed_once(mind: Agent, fleet: Fleet) -> None:
    remember_talk(mind, "Oh yes, thank you so much!")
    consolidate()
    assert (concepts_of(mind), waiting_for(mind, "unextracted")) == ({}, set())


def test_two_workers_process_each_memory_once(mind: Agent, fleet: Fleet) -> None:
    remember_talk(mind)
    results = at_once(lambda _: consolidate(), writers=3)
    assert sum(result.done for result in results) == len(TALK)
    assert sum(result.failed for result in results) == 0


@pytest.mark.usefixtures("modelled")
def test_a_model_names_concepts(mind: Agent, fleet: Fleet, scripted: Script) -> None:
    model = scripted(_reply_with_concepts(["ship", "Lisbon"], [], ["voyage"], ["ship", "repair"]))
    remember_talk(mind)
    consolidate()
    assert len(fleet.messages) == 1
    fleet.run()
    assert concepts_of(mind) == {
        TALK[0]: {"ship", "Lisbon"},
        TALK[2]: {"voyage"},
        TALK[3]: {"ship", "repair"},
    }
    assert waiting_for(mind, "unextracted") == set(), "the memory without concepts waits no longer either"
    assert "[2] 2024-03-01 12:01, Ada: Breakfast" in model.requests[0].messages[0].content
    assert [entry.purpose for entry in ledger_of(mind)] == ["extract"]
    consolidate()
    assert fleet.messages == []


@pytest.mark.usefixtures("modelled")
def test_memories_left_out_by_a_model_are_asked_about_again(
    mind: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted(_reply_with_concepts(["ship"], ["breakfast"]), _reply_with_concepts(["voyage"], ["glass"]))
    ids = remember_talk(mind)
    consolidate()
    fleet.run()
    assert waiting_for(mind, "unextracted") == set(ids[2:])
    consolidate()
    fleet.run()
    assert concepts_of(mind)[TALK[3]] == {"glass"}
    assert waiting_for(mind, "unextracted") == set()


@pytest.mark.usefixtures("modelled")
def test_no_memory_is_asked_about_twice_at_once(mind: Agent, fleet: Fleet) -> None:
    remember_talk(mind, *(f"Barrel number {n} holds {n} litres of water." for n in range(25)))
    at_once(lambda _: consolidate(), writers=3)
    subjects = [call.subject["memories"] for call in calls_of(mind)]
    assert sorted(map(len, subjects)) == [5, EXTRACT_BATCH, EXTRACT_BATCH]
    assert len({memory_id for subject in subjects for memory_id in subject}) == 25


@pytest.mark.usefixtures("modelled")
def test_memories_of_a_failed_call_are_left_out(mind: Agent, fleet: Fleet, scripted: Script) -> None:
    def answer(request: ModelRequest) -> str:
        return _reply_with_concepts(["cask"]) if "cask" in request.messages[0].content else "no"

    scripted(answer, repeat=True)
    failed = remember_talk(mind)
    consolidate()
    run_all_tries(mind, fleet)
    (call,) = calls_of(mind)
    assert call.status == CallStatus.FAILED
    remember_talk(mind, "The cask leaks.", session="later")
    consolidate()
    assert fleet.messages == [], "the cause of the failure may persist"
    move_into_past(mind, timedelta(hours=2))
    consolidate()
    fleet.run()
    assert concepts_of(mind) == {"The cask leaks.": {"cask"}}
    assert waiting_for(mind, "unextracted") == set(failed)


@pytest.mark.usefixtures("modelled")
def test_a_memory_that_was_purged_meanwhile_is_skipped(mind: Agent, fleet: Fleet, scripted: Script) -> None:
    model = scripted(_reply_with_concepts(["breakfast"], ["voyage"], ["glass"]))
    ids = remember_talk(mind)
    consolidate()
    _purge(mind, ids[0])
    fleet.run()
    assert model.requests == [], "the prompt contains the text of the purged memory"
    consolidate()
    fleet.run()
    assert set(concepts_of(mind)) == set(TALK[1:])
    assert [call.status for call in calls_of(mind)] == [CallStatus.RETRIED, CallStatus.COMPLETE]


def _purge(agent: Agent, memory_id: UUID) -> None:
    with tenant_transaction(agent.tenant_id):
        archive(memory_ids=[memory_id], reason="asked for", actor="user:ada")
        purge(memory_ids=[memory_id], reason="asked for", actor="user:ada")


@pytest.mark.usefixtures("modelled")
def test_a_purge_empties_prompts_and_replies(mind: Agent, fleet: Fleet, scripted: Script) -> None:
    summary = json.dumps({"summary": "The keel of the Heron was laid."})
    scripted(
        lambda request: (
            summary
            if request.purpose == "summarize"
            else _reply_with_concepts(*([["keel"]] * request.messages[0].content.count("\n[")))
        ),
        repeat=True,
    )
    ids = remember_talk(mind)
    consolidate()
    fleet.run()
    remember_talk(mind, "The anchor is new.", session="other")
    consolidate()
    close_and_settle(mind)
    maintain_episodes()
    fleet.run()
    _purge(mind, ids[0])
    with_prompt = [call for call in calls_of(mind) if call.request]
    emptied = [call for call in calls_of(mind) if not call.request]
    assert [call.purpose for call in emptied] == ["extract", "summarize"]
    assert [call.reply for call in emptied] == ["", ""]
    assert {call.status for call in emptied} == {CallStatus.COMPLETE}
    assert "The anchor is new." in json.dumps([call.request for call in with_prompt])
    assert all(TALK[0] not in json.dumps(call.request) for call in calls_of(mind))


@pytest.mark.usefixtures("modelled")
def test_prompts_are_emptied_after_seven_days(mind: Agent, fleet: Fleet, scripted: Script) -> None:
    scripted(_reply_with_concepts(*([["ship"]] * 4)))
    remember_talk(mind)
    consolidate()
    fleet.run()
    move_into_past(mind, timedelta(days=6, hours=23))
    assert empty_prompts().done == 0
    move_into_past(mind, timedelta(hours=2))
    assert empty_prompts().done == 1
    (call,) = calls_of(mind)
    assert (call.request, call.reply != "", call.status) == ({}, True, CallStatus.COMPLETE)
    assert empty_prompts().steps == 0


@pytest.mark.usefixtures("modelled")
def test_prompts_are_retained_for_the_time_in_the_settings(
    mind: Agent, fleet: Fleet, scripted: Script, settings: Any
) -> None:
    scripted(_reply_with_concepts(*([["ship"]] * 4)))
    remember_talk(mind)
    consolidate()
    fleet.run()
    move_into_past(mind, timedelta(hours=2))
    settings.ARBOR_MAINTENANCE_PROMPTS_KEPT = timedelta(hours=3)
    assert empty_prompts().done == 0
    settings.ARBOR_MAINTENANCE_PROMPTS_KEPT = timedelta(hours=1)
    assert empty_prompts().done == 1


@pytest.mark.usefixtures("modelled")
def test_memories_left_out_three_times_are_decided_by_rule(
    mind: Agent, fleet: Fleet, scripted: Script, settings: Any
) -> None:
    settings.ARBOR_APPRAISE_MEMORIES = True
    model = scripted(
        lambda request: (
            _reply_with_scores(0.9) if request.purpose == "weigh" else _reply_with_concepts(["ship"])
        ),
        repeat=True,
    )
    _remember_unappraised(mind, "The Heron sails.")
    *_, last_left_out = _remember_unappraised(mind, "The keel is laid.", "Oh yes.", TALK[3])
    before = importance_of(mind, last_left_out)
    # The model answers about the first memory of each request only.
    for _ in range(8):
        consolidate()
        fleet.run()
    assert waiting_for(mind, "unextracted") == waiting_for(mind, "unweighed") == set()
    assert len(model.requests) == 2 * 3, "three replies that left them out, of either kind"
    assert {"Heron"} <= concepts_of(mind)[TALK[3]]
    assert importance_of(mind, last_left_out) == before
    last = [call for call in calls_of(mind) if call.purpose == "extract"][-1]
    assert last.dropped == [
        "memory 2: left out of the reply, time 3 of 3: its concepts are extracted by rule"
    ]


@pytest.mark.usefixtures("modelled")
def test_dropped_entries_are_in_the_calls_record(mind: Agent, fleet: Fleet, scripted: Script) -> None:
    names = ["\ufdfa" * 10, *"abcdef"]
    scripted(_reply_with_concepts(names, ["ship"]))
    remember_talk(mind, "The keel " + "of oak " * 300, "The Heron.")
    consolidate()
    fleet.run()
    (call,) = calls_of(mind)
    assert call.status == CallStatus.COMPLETE
    prompt, folded, above = call.dropped
    assert prompt == "prompt: shown only to the first 1,200 characters: memory 1"
    assert "folded it has" in folded
    assert above == "memory 1: 'f': above the 5 concepts of one memory"
    assert concepts_of(mind)["The Heron."] == {"ship"}


def _reply_with_scores(*values: float) -> str:
    return json.dumps({"scores": [{"n": n, "importance": value} for n, value in enumerate(values, 1)]})


def _remember_unappraised(agent: Agent, *texts: str) -> list[UUID]:
    memories = [NewMemory(content=text, occurred_at=LONG_AGO, role="user") for text in texts]
    return list(remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories).ids)


@pytest.mark.usefixtures("modelled")
def test_importance_is_the_mean_of_rule_and_model(
    mind: Agent, fleet: Fleet, scripted: Script, settings: Any
) -> None:
    settings.ARBOR_APPRAISE_MEMORIES = True
    plain, fixed = _remember_unappraised(
        mind, "The harbour master has a grey beard.", "Remember this: the safe is behind the chart."
    )
    before = importance_of(mind, plain)
    assert importance_of(mind, fixed) == 1.0
    scripted(
        lambda request: (
            _reply_with_scores(0.9, 0.1)
            if request.purpose == "weigh"
            else _reply_with_concepts(["harbour"], ["safe"])
        ),
        repeat=True,
    )
    assert waiting_for(mind, "unweighed") == {plain, fixed}
    consolidate()
    fleet.run()
    assert importance_of(mind, plain) == pytest.approx((before + 0.9) / 2)
    assert importance_of(mind, fixed) == 1.0
    assert waiting_for(mind, "unweighed") == set()
    consolidate()
    fleet.run()
    assert importance_of(mind, plain) == pytest.approx((before + 0.9) / 2), "the model's weight counts once"
    assert {call.purpose for call in calls_of(mind)} == {"extract", "weigh"}


@pytest.mark.usefixtures("modelled")
def test_memories_are_appraised_by_a_model_only_on_request(mind: Agent, fleet: Fleet) -> None:
    _remember_unappraised(mind, "The harbour master has a grey beard.")
    assert waiting_for(mind, "unweighed") == set()
    consolidate()
    assert {call.purpose for call in calls_of(mind)} == {"extract"}


def test_the_reflex_policy_appraises_as_the_rule_does(mind: Agent, fleet: Fleet, settings: Any) -> None:
    settings.ARBOR_MAINTENANCE_MODEL = "reflex/policy"
    settings.ARBOR_APPRAISE_MEMORIES = True
    (memory,) = _remember_unappraised(mind, "We decided to buy the new sails.")
    before = importance_of(mind, memory)
    consolidate()
    fleet.run()
    assert importance_of(mind, memory) == pytest.approx(before)
    assert waiting_for(mind, "unweighed") == waiting_for(mind, "unextracted") == set()
