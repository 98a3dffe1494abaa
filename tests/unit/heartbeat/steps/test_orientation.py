"""Orientation: focus, boundary matches, recall and mode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.focus import NOT_NOW
from arbor.heartbeat.needs import BufferItems, Embedding
from arbor.heartbeat.reply import ProposedAction, Reply
from arbor.heartbeat.situation import BufferItemView, Environment, Mode
from arbor.heartbeat.state import Beat, Focus, Selfhood
from arbor.heartbeat.steps.decisions import decide
from arbor.heartbeat.steps.orientation import NOT_OWN_BEATS, focus, guard, orient, select_mode
from arbor.memory.recall_request import RecallRequest
from tests.unit.heartbeat.beats import AGENT, Answers, heartbeat_of, opening_of, recalled
from tests.unit.heartbeat.builders import NOW, goal, memory, percept, situation

MODEL = EmbeddingModel(name="wordllama", dimension=2)
OWN = {"name": "no_gossip", "examples": []}


def oriented(text: str = "ferries", vector: list[float] | None = None, **changes: Any) -> Beat:
    return heartbeat_of(
        focus=Focus(text=text, vector=vector), opening=opening_of(), embedding_model=MODEL, **changes
    )


@pytest.mark.parametrize(
    ("seen", "queries", "plain", "boundaries"),
    [
        # Nothing on its mind.
        ({}, None, None, None),
        ({"goals": [goal(title="Map the pier")]}, 1, [], None),
        ({"percepts": [percept("The ferry is late")]}, 1, ["The ferry is late"], [OWN]),
        ({"percepts": [percept("  ")]}, None, None, None),
    ],
)
def test_the_focus_needs_vectors_of_itself_and_of_what_reached_the_agent(
    seen: dict[str, Any], queries: int | None, plain: list[str] | None, boundaries: list[Any] | None
) -> None:
    answers = Answers({Embedding: lambda need: {text: [1.0, 0.0] for text in (*need.queries, *need.plain)}})
    heartbeat = heartbeat_of(
        view=situation(**seen), embedding_model=MODEL, selfhood=Selfhood(boundaries=[OWN])
    )

    found = answers.run(focus(heartbeat)).state.focus

    assert found is not None
    if queries is None:
        assert (answers.asked, found) == ([], Focus(text=""))
        return
    (need,) = answers.asked
    assert need.model == MODEL
    assert (list(need.queries), list(need.plain), need.boundaries) == ([found.text], plain, boundaries)
    assert found.vector == [1.0, 0.0]
    assert set(found.vectors) == {found.text, *need.plain}


def test_a_focus_that_cannot_be_embedded_has_no_vector() -> None:
    found = Answers().run(focus(heartbeat_of(view=situation(goals=[goal()])))).state.focus
    assert found is not None
    assert (found.text != "", found.vector) == (True, None)


@pytest.mark.parametrize(
    ("content", "vectors", "crossed"),
    [
        ("Please lie to the harbour master.", {}, ["no_deception"]),
        ("The client wants the readings of March.", {}, []),
        (
            "Help with hurting another person!",
            {"Help with hurting another person!": [1.0, 0.0], "Help me hurt another person.": [1.0, 0.0]},
            ["no_harm"],
        ),
        ("Help with hurting another person!", {}, []),
    ],
)
def test_what_reached_it_is_checked_by_its_words_and_its_meaning(
    content: str, vectors: dict[str, list[float]], crossed: list[str]
) -> None:
    seen = situation(percepts=[percept(content)])
    heartbeat = heartbeat_of(view=seen, focus=Focus(text="", vectors=vectors))
    result = Answers().run(guard(heartbeat))

    assert [found.boundary for found in result.state.situation.crossed] == crossed
    assert len(result.changed) == len(crossed)


def test_what_reached_nobody_crosses_nothing() -> None:
    heartbeat = heartbeat_of()
    assert Answers().run(guard(heartbeat)).state is heartbeat


@pytest.mark.parametrize("held", [0, 2])
def test_what_bears_on_the_focus_is_recalled_and_looked_for_among_what_is_held(held: int) -> None:
    thing = BufferItemView(content="Somebody sang on the quay", at=NOW)
    answers = Answers({RecallRequest: [recalled(1), recalled(2)], BufferItems: [thing]})
    heartbeat = replace(oriented(vector=[0.5, 0.5]), opening=opening_of(held=held, mood=-0.25))

    result = answers.run(orient(heartbeat)).state

    assert answers.kinds == [RecallRequest, BufferItems][: 1 + bool(held)]
    asked = answers.asked[0]
    assert (asked.agent_id, asked.text, asked.vector, asked.model) == (AGENT, "ferries", [0.5, 0.5], MODEL)
    assert (asked.limit, asked.now, asked.only, asked.mood) == (5, NOW, NOT_OWN_BEATS, -0.25)
    if held:
        need = answers.asked[1]
        assert (need.text, need.vector, need.model, need.limit) == ("ferries", [0.5, 0.5], MODEL, 3)
    seen = result.situation
    assert [found.content for found in seen.relevant] == ["memory 1", "memory 2"]
    assert [found.score for found in seen.relevant] == [1.0, 0.5]
    assert list(seen.held) == ([thing] if held else [])
    assert result.effects.recalls == ({recalled(1).id: 1.0, recalled(2).id: 0.5},)
    # A vector need not be stored with the checkpoint.
    assert result.focus is None


@pytest.mark.parametrize("found", [[], None])
def test_nothing_that_comes_to_mind_counts_as_no_recall(found: list[Any] | None) -> None:
    heartbeat = oriented("ferries" if found is not None else "", view=situation(relevant=[memory()]))
    answers = Answers({RecallRequest: found})

    result = answers.run(orient(heartbeat)).state

    assert answers.kinds == ([RecallRequest] if found is not None else [])
    assert (result.situation.relevant, result.situation.held, result.effects.recalls) == ([], [], ())


@pytest.mark.parametrize(
    ("seen", "mode"),
    [
        ({}, Mode.REFLECTION),
        ({"goals": [goal()]}, Mode.PLAN_EXECUTION),
        ({"environment": Environment(now=NOW, user_waiting=True)}, Mode.CONVERSATION),
        ({"beat_number": 5}, Mode.CONSOLIDATION),
    ],
)
def test_the_mode_is_chosen_and_seen(seen: dict[str, Any], mode: Mode) -> None:
    heartbeat = Answers().run(select_mode(heartbeat_of(view=situation(**seen)))).state
    assert (heartbeat.mode, heartbeat.situation.mode) == (mode.value, mode)


def test_consolidation_has_actions_of_its_own() -> None:
    allowed = ["recall", "maintain", "inquire_deep", "reach_out_user", "brainstorm_goals", "rest"]
    seen = situation(beat_number=5, actions=ACTIONS.offers(allowed))
    consolidating = Answers().run(select_mode(heartbeat_of(view=seen, allowed=allowed))).state
    reply = Reply(actions=[ProposedAction(action="inquire_deep", params={"question": "How deep?"})])
    decided = Answers().run(decide(replace(consolidating, reply=reply))).state

    assert [offer.name for offer in consolidating.situation.actions] == ["recall", "maintain", "rest"]
    assert consolidating.allowed == allowed
    (decision,) = decided.decisions
    assert (decision.verdict, NOT_NOW in decision.reason) == (DecisionVerdict.TOO_SOON, True)
    # At any other heartbeat they are offered.
    later = Answers().run(select_mode(heartbeat_of(view=seen.model_copy(update={"beat_number": 6})))).state
    assert len(later.situation.actions) == len(allowed)
