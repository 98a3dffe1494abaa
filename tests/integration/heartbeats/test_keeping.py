"""Memories of heartbeats: their retention and trust."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import Agent
from apps.fleet.contact import message_agent
from apps.memories.models import (
    Edge,
    Memory,
)
from apps.memories.services.graph.relations import NewRelation, relate
from apps.selves.services.alignment import update_trust_of_ends
from apps.selves.services.beliefs import add_belief
from apps.tenants.scope import tenant_transaction
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.values import HEARTBEATS_SESSION
from arbor.selves.values import BeliefCategory, NewBelief
from tests.integration.heartbeats.beater import Beater, action_of, reply_of
from tests.integration.heartbeats.conftest import last_of

# --- What is kept, and for how long ------------------------------------------------------------------


def _kept(agent: Agent, **conditions: Any) -> Memory:
    with tenant_transaction(agent.tenant_id):
        return Memory.objects.get(agent_id=agent.id, **conditions)


def test_what_it_decides_to_remember_is_weighed_by_what_it_says_and_lasts_unless_it_failed(
    beater: Beater, agent: Agent
) -> None:
    texts = ("We agreed on 40 dollars.", "The upload failed.", "The reef is red.")
    actions = [action_of("remember", content=text, type="episodic") for text in texts[:2]]
    beater.beat(reply_of(actions=[*actions, action_of("remember", content=texts[2], importance=0.9)]))
    agreed, failed, red = (_kept(agent, content=text) for text in texts)
    assert agreed.importance == pytest.approx(0.85)
    assert (agreed.retention, agreed.expires_at) == ("lasting", None)
    assert (failed.retention, failed.expires_at is None) == ("error", False)
    assert (red.importance, red.retention) == (0.9, "lasting")


def test_its_notes_last_and_those_it_is_asked_to_remember_stay(beater: Beater, agent: Agent) -> None:
    notes = ["The reef is red.", "Remember this: the gate code is 4711."]
    beater.beat(reply_of(memory_notes=[{"text": text, "referenced_date": None} for text in notes]))
    plain, asked = (_kept(agent, content=text) for text in notes)
    assert (plain.importance, plain.retention, plain.expires_at) == (0.6, "lasting", None)
    assert (asked.importance, asked.retention, asked.expires_at) == (1.0, "permanent", None)


def test_a_beat_is_remembered_for_a_month_and_one_in_which_nothing_worked_for_two_weeks(
    beater: Beater, agent: Agent
) -> None:
    nowhere = "00000000-0000-0000-0000-000000000001"
    beater.beat(reply_of())
    beater.beat(reply_of(actions=[action_of("connect", from_id=nowhere, to_id=nowhere, relation="causes")]))
    with tenant_transaction(agent.tenant_id):
        first, second = Memory.objects.filter(agent_id=agent.id, session="heartbeats").order_by("position")
    assert (first.retention, second.retention) == ("task", "error")
    assert [
        round((memory.expires_at - memory.created_at).total_seconds() / 86_400)
        for memory in (first, second)
        if memory.expires_at
    ] == [30, 14]
    assert first.episode_id == second.episode_id
    assert (first.sequence, second.sequence) == (1, 2)


def test_what_is_learned_is_trusted_as_far_as_its_source_and_tied_to_the_beat(
    beater: Beater, agent: Agent
) -> None:
    with tenant_transaction(agent.tenant_id):
        message_agent(
            agent_id=agent.id, text="Mind you, the north buoy broke loose last night.", actor="user:ann"
        )
    beater.beat(
        reply_of(
            actions=[
                action_of("reflect", insight="Broken buoys come before storms.", focus="weather"),
                action_of("remember", content="The keeper sleeps late.", type="semantic", importance=0.5),
            ],
            memory_notes=[{"text": "The north buoy broke loose."}, {"text": "Currents shift in autumn."}],
        )
    )
    with tenant_transaction(agent.tenant_id):
        source = f"heartbeat:{last_of(agent).id}"
        beat = Memory.objects.get(session=HEARTBEATS_SESSION).id
        rows = {row.content: row for row in Memory.objects.filter(session="", source=source)}
        told = set(Edge.objects.filter(target_id=beat).values_list("source_id", "relation"))
    sources = {
        content: [(source["kind"], source["trust"]) for source in row.detail.get("sources", [])]
        for content, row in rows.items()
        if row.type == "semantic"
    }
    assert sources == {
        "Broken buoys come before storms.": [("heartbeat", 0.8)],
        "The keeper sleeps late.": [("heartbeat", 0.8)],
        "The north buoy broke loose.": [("user", 0.7)],
        "Currents shift in autumn.": [("heartbeat", 0.8)],
    }
    assert rows["The north buoy broke loose."].trust == pytest.approx(0.15 + 0.85 * 0.7)
    assert rows["Broken buoys come before storms."].trust == pytest.approx(0.15 + 0.85 * 0.8)
    assert rows["Broken buoys come before storms."].detail["focus"] == "weather"
    assert told == {(rows[content].id, "learned_from") for content in sources}


def test_an_agent_that_repeats_itself_is_no_second_source_and_a_belief_colours_what_it_learned(
    beater: Beater, agent: Agent
) -> None:
    note = {"text": "Currents shift in autumn."}
    beater.beat(reply_of(memory_notes=[note]))
    beater.beat(reply_of(memory_notes=[note]))
    with tenant_transaction(agent.tenant_id):
        (fact,) = Memory.objects.filter(content=note["text"])
        assert len(fact.detail["sources"]) == 1
        assert fact.trust == pytest.approx(0.83)
        belief = add_belief(
            agent_id=agent.id,
            belief=NewBelief(statement="Nothing shifts.", category=BeliefCategory.WORLD, confidence=0.5),
            actor="user:ann",
        )
        new = NewRelation(
            source=GraphNode(GraphNodeKind.MEMORY, fact.id),
            target=GraphNode(GraphNodeKind.BELIEF, belief.id),
            relation=Relation.CONTRADICTS,
        )
        relate(agent_id=agent.id, new=new)
        update_trust_of_ends(agent_id=agent.id, ends=new.ends)
        fact.refresh_from_db()
    assert fact.trust == pytest.approx(0.83 * 0.5)
