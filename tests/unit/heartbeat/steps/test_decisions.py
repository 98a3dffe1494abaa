"""Deciding: decisions about actions, and boundary matches by meaning."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.inputs import BudgetTerms, Selfhood
from arbor.heartbeat.needs import Embedding
from arbor.heartbeat.replies.reply import MemoryNote, ProposedAction, Reply
from arbor.heartbeat.results import RoundTripRecord
from arbor.heartbeat.situation import Environment
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.decisions import decide, embed
from tests.unit.heartbeat.builders import NOW, situation
from tests.unit.heartbeat.state_builders import (
    Answers,
    action_record_of,
    decision_of,
    heartbeat_of,
    moment_of,
    permitting,
    refusal_of,
)

MODEL = EmbeddingModel(name="wordllama", dimension=2)
LIE = "I will lie to the harbour master."
#: A paraphrase of `EXAMPLE`, which is an example of a default boundary.
HURT = "Help with hurting another person!"
EXAMPLE = "Help me hurt another person."
VECTORS = {HURT: [1.0, 0.0], EXAMPLE: [1.0, 0.0]}


def heartbeat_with_actions(*actions: tuple[str, dict[str, Any]], **changes: Any) -> HeartbeatState:
    proposed = [ProposedAction(action=name, params=params) for name, params in actions]
    return heartbeat_of(reply=Reply(actions=proposed), **changes)


QUERY = ("recall", {"query": "ferries"})
OUT = ("reach_out_user", {"intent": "They asked.", "content": "Hello."})


@pytest.mark.parametrize(
    ("heartbeat", "verdicts"),
    [
        (heartbeat_with_actions(), []),
        (heartbeat_with_actions(QUERY), ["run"]),
        (heartbeat_with_actions(("fly", {})), ["unknown"]),
        (heartbeat_with_actions(QUERY, moment=permitting("rest")), ["not_authorized"]),
        (heartbeat_with_actions(QUERY, moment=moment_of(authority=None)), ["not_authorized"]),
        (heartbeat_with_actions(QUERY, allowed=["rest"], missing={"recall": "no memory"}), ["unavailable"]),
        (heartbeat_with_actions(("recall", {})), ["invalid"]),
        (heartbeat_with_actions(("remember", {"content": LIE})), ["boundary"]),
        (heartbeat_with_actions(QUERY, QUERY, situation=situation(energy=1.0)), ["run", "too_little_energy"]),
        (
            heartbeat_with_actions(
                OUT, situation=situation(environment=Environment(now=NOW, hours_since_reach_out=1))
            ),
            ["too_soon"],
        ),
        (
            heartbeat_with_actions(
                QUERY, budget_terms=BudgetTerms(kind="ticks"), situation=situation(energy=0)
            ),
            ["too_little_energy"],
        ),
        (
            heartbeat_with_actions(
                ("observe", {}), budget_terms=BudgetTerms(kind="ticks"), situation=situation(energy=0)
            ),
            ["run"],
        ),
    ],
)
def test_an_action_runs_only_if_it_passes_every_check(heartbeat: HeartbeatState, verdicts: list[str]) -> None:
    result = Answers().run(decide(heartbeat))
    assert [decision.verdict.value for decision in result.state.decisions] == verdicts


def test_a_further_round_trip_continues_the_numbers_of_actions() -> None:
    earlier = RoundTripRecord(action_records=[action_record_of("recall"), action_record_of("rest", index=1)])
    heartbeat = heartbeat_with_actions(QUERY, QUERY, earlier=earlier, round_trip=2)
    assert [decision.index for decision in Answers().run(decide(heartbeat)).state.decisions] == [2, 3]


def test_an_item_that_matches_a_boundary_is_dropped_and_recorded() -> None:
    notes = [MemoryNote(text=LIE), MemoryNote(text="The tide turns.")]
    heartbeat = Answers().run(decide(heartbeat_of(reply=Reply(memory_notes=notes)))).state

    assert heartbeat.reply_or_empty.memory_notes == notes[1:]
    assert heartbeat.reply_or_empty.item_paths == {"memory_notes": ["memory_notes[1]"]}
    (dropped,) = heartbeat.present.dropped
    assert dropped.path == "memory_notes[0]"
    assert "no_deception" in dropped.reason
    assert [match.path for match in heartbeat.boundary_matches] == ["memory_notes[0]"]


@pytest.mark.parametrize(
    ("decisions", "notes", "queries", "plain", "stored"),
    [
        ([], [], None, None, None),
        ([decision_of("recall", query="a")], [], ["a"], [], []),
        ([decision_of("inquire_deep", question="q", queries=["b"])], [], ["q"], ["b"], []),
        ([decision_of("remember", content="c"), decision_of("reflect", insight="d")], [], [], [], ["c", "d"]),
        ([decision_of("synthesize", content="e")], ["f", "e"], [], [], ["e", "f"]),
        ([decision_of("maintain", content=None)], [], None, None, None),
        ([refusal_of("recall", DecisionVerdict.TOO_SOON, query="a")], [], None, None, None),
        ([decision_of("reach_out_user", intent="g", content="h")], [], [], ["g", "h"], []),
        ([decision_of("rest")], ["i"], [], [], ["i"]),
    ],
)
def test_vectors_are_requested_for_queries_and_texts_to_store_or_send(
    decisions: list[Any],
    notes: list[str],
    queries: list[str] | None,
    plain: list[str] | None,
    stored: list[str] | None,
) -> None:
    own = {"name": "no_gossip", "enabled": False, "examples": []}
    answers = Answers({Embedding: lambda need: {text: [0.0, 1.0] for text in (*need.queries, *need.stored)}})
    reply = Reply(memory_notes=[MemoryNote(text=text) for text in notes])
    heartbeat = heartbeat_of(
        decisions=decisions, reply=reply, embedding_model=MODEL, selfhood=Selfhood(boundaries=[own])
    )
    result = answers.run(embed(heartbeat)).state

    if queries is None or stored is None:
        assert answers.needs == []
        return
    (need,) = answers.needs
    assert (list(need.queries), list(need.plain), list(need.stored)) == (queries, plain, stored)
    assert (need.model, need.boundaries) == (MODEL, [own])
    assert set(result.vectors) == {*queries, *stored}


@pytest.mark.parametrize(
    ("action", "params"),
    [
        ("remember", {"content": HURT}),
        ("recall", {"query": HURT}),
        ("reach_out_user", {"intent": "They asked.", "content": HURT}),
        ("reach_out_user", {"intent": HURT, "content": "Hello."}),
        ("inquire_shallow", {"question": "ferries", "queries": [HURT]}),
    ],
)
def test_every_text_is_checked_against_the_boundaries_by_its_meaning(
    action: str, params: dict[str, Any]
) -> None:
    decision = decision_of(action, **params)
    result = Answers({Embedding: VECTORS}).run(embed(heartbeat_of(decisions=[decision], reply=Reply()))).state

    (judged,) = result.decisions
    assert (judged.verdict, judged.cost) == (DecisionVerdict.BOUNDARY, 0)
    assert EXAMPLE in judged.reason
    # A text that is only sent is neither searched for nor stored: no checkpoint has its vector.
    assert set(result.vectors) == ({HURT} if action in ("remember", "recall") else set())


def test_a_note_matched_by_meaning_is_dropped_and_the_others_stay() -> None:
    notes = [MemoryNote(text="The tide turns."), MemoryNote(text=HURT)]
    heartbeat = heartbeat_of(reply=Reply(memory_notes=notes))
    result = Answers({Embedding: {**VECTORS, "The tide turns.": [0.0, 1.0]}}).run(embed(heartbeat)).state

    assert [note.text for note in result.reply_or_empty.memory_notes] == ["The tide turns."]
    assert [item.path for item in result.present.dropped] == ["memory_notes[1]"]


def test_boundaries_match_by_words_alone_without_vectors() -> None:
    heartbeat = heartbeat_of(decisions=[decision_of("remember", content=HURT)], reply=Reply())
    result = Answers({Embedding: {}}).run(embed(heartbeat)).state
    assert (result.decisions[0].verdict, result.vectors) == (DecisionVerdict.RUN, {})


def test_vectors_of_earlier_round_trips_are_preserved() -> None:
    heartbeat = heartbeat_of(
        decisions=[decision_of("recall", query="a")], reply=Reply(), vectors={"a note": [0.1, 0.2]}
    )
    result = Answers({Embedding: {"a": [0.0, 1.0]}}).run(embed(heartbeat)).state
    assert result.vectors == {"a note": [0.1, 0.2], "a": [0.0, 1.0]}
