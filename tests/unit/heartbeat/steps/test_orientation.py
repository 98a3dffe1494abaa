"""Orientation: focus, boundary matches, recall and mode."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.focus import CONSOLIDATION_REFUSAL
from arbor.heartbeat.inputs import Selfhood
from arbor.heartbeat.needs import BufferItems, Embedding
from arbor.heartbeat.replies.reply import ProposedAction, Reply
from arbor.heartbeat.situation import BufferItemView, Environment, Mode
from arbor.heartbeat.state import Focus, HeartbeatState
from arbor.heartbeat.steps.decisions import decide
from arbor.heartbeat.steps.orientation import focus, guard, orient, select_mode
from arbor.memory.recall.recall_request import EVERYTHING, RecallRequest
from tests.unit.heartbeat.builders import NOW, goal, memory, percept, situation
from tests.unit.heartbeat.state_builders import AGENT, Answers, heartbeat_of, opening_of, recalled_memory

MODEL = EmbeddingModel(name="wordllama", dimension=2)
OWN_BOUNDARY = {"name": "no_gossip", "examples": []}


def focused_heartbeat(
    text: str = "ferries", vector: list[float] | None = None, **changes: Any
) -> HeartbeatState:
    return heartbeat_of(
        focus=Focus(text=text, vector=vector), opening=opening_of(), embedding_model=MODEL, **changes
    )


@pytest.mark.parametrize(
    ("view", "queries", "plain", "boundaries"),
    [
        # The agent has nothing on its mind.
        ({}, None, None, None),
        ({"goals": [goal(title="Map the pier")]}, 1, [], None),
        ({"percepts": [percept("The ferry is late")]}, 1, ["The ferry is late"], [OWN_BOUNDARY]),
        ({"percepts": [percept("  ")]}, None, None, None),
    ],
)
def test_the_focus_requests_vectors_of_itself_and_of_percepts(
    view: dict[str, Any], queries: int | None, plain: list[str] | None, boundaries: list[Any] | None
) -> None:
    answers = Answers({Embedding: lambda need: {text: [1.0, 0.0] for text in (*need.queries, *need.plain)}})
    heartbeat = heartbeat_of(
        situation=situation(**view), embedding_model=MODEL, selfhood=Selfhood(boundaries=[OWN_BOUNDARY])
    )

    new_focus = answers.run(focus(heartbeat)).state.focus

    assert new_focus is not None
    if queries is None:
        assert (answers.needs, new_focus) == ([], Focus(text=""))
        return
    (need,) = answers.needs
    assert need.model == MODEL
    assert (list(need.queries), list(need.plain), need.boundaries) == ([new_focus.text], plain, boundaries)
    assert new_focus.vector == [1.0, 0.0]
    assert set(new_focus.vectors) == {new_focus.text, *need.plain}


def test_a_focus_that_cannot_be_embedded_has_no_vector() -> None:
    new_focus = Answers().run(focus(heartbeat_of(situation=situation(goals=[goal()])))).state.focus
    assert new_focus is not None
    assert (new_focus.text != "", new_focus.vector) == (True, None)


@pytest.mark.parametrize(
    ("content", "vectors", "boundaries"),
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
def test_percepts_are_checked_by_words_and_by_meaning(
    content: str, vectors: dict[str, list[float]], boundaries: list[str]
) -> None:
    view = situation(percepts=[percept(content)])
    heartbeat = heartbeat_of(situation=view, focus=Focus(text="", vectors=vectors))
    result = Answers().run(guard(heartbeat))

    assert [match.boundary for match in result.state.situation.boundary_matches] == boundaries
    assert len(result.changed) == len(boundaries)


def test_a_situation_without_percepts_matches_no_boundary() -> None:
    heartbeat = heartbeat_of()
    assert Answers().run(guard(heartbeat)).state is heartbeat


@pytest.mark.parametrize("buffered", [0, 2])
def test_memories_and_buffer_items_near_the_focus_are_recalled(buffered: int) -> None:
    item = BufferItemView(content="Somebody sang on the quay", at=NOW)
    answers = Answers({RecallRequest: [recalled_memory(1), recalled_memory(2)], BufferItems: [item]})
    heartbeat = replace(
        focused_heartbeat(vector=[0.5, 0.5]), opening=opening_of(buffer_item_count=buffered, mood=-0.25)
    )

    result = answers.run(orient(heartbeat)).state

    assert answers.kinds == [RecallRequest, BufferItems][: 1 + bool(buffered)]
    request = answers.needs[0]
    assert (request.agent_id, request.text, request.vector, request.model) == (
        AGENT,
        "ferries",
        [0.5, 0.5],
        MODEL,
    )
    # The prompt shows no latest events that the recall would have to leave out.
    assert (request.limit, request.now, request.only, request.mood) == (15, NOW, EVERYTHING, -0.25)
    if buffered:
        need = answers.needs[1]
        assert (need.text, need.vector, need.model, need.limit) == ("ferries", [0.5, 0.5], MODEL, 3)
    view = result.situation
    assert [relevant.content for relevant in view.relevant] == ["memory 1", "memory 2"]
    assert [relevant.score for relevant in view.relevant] == [1.0, 0.5]
    assert list(view.held) == ([item] if buffered else [])
    assert result.effects.recalls == ({recalled_memory(1).id: 1.0, recalled_memory(2).id: 0.5},)
    # A vector need not be stored with the checkpoint.
    assert result.focus is None


def test_own_heartbeats_that_the_prompt_shows_are_not_recalled() -> None:
    shown = [memory("pier", at=NOW - timedelta(hours=2)), memory("reef", at=NOW - timedelta(hours=1))]
    narratives = [
        recalled_memory(number, session="heartbeats", content=f"Heartbeat {number}. {text}")
        for number, text in enumerate(
            ("I charted the reef.", "I painted the pier.", "I swept the tower.", "I sang at dusk."), start=1
        )
    ]
    facts = [recalled_memory(number) for number in range(5, 10)]
    answers = Answers({RecallRequest: [*narratives, *facts]})
    result = answers.run(orient(focused_heartbeat("reef", situation=situation(recent=shown)))).state
    only = answers.needs[0].only
    assert (only.without_session, only.without_since) == ("heartbeats", NOW - timedelta(hours=2))
    chosen = [found.id for found in result.situation.relevant]
    assert chosen == [str(found.id) for found in (*narratives[:2], *facts[:3])]
    # What the prompt does not show was not used.
    assert [str(memory_id) for memory_id in result.effects.recalls[0]] == chosen


@pytest.mark.parametrize("text", ["ferries", ""])
def test_an_empty_recall_or_focus_is_not_recorded(text: str) -> None:
    heartbeat = focused_heartbeat(text, situation=situation(relevant=[memory()]))
    answers = Answers({RecallRequest: []})

    result = answers.run(orient(heartbeat)).state

    assert answers.kinds == ([RecallRequest] if text else [])
    assert (result.situation.relevant, result.situation.held, result.effects.recalls) == ([], [], ())


@pytest.mark.parametrize(
    ("view", "mode"),
    [
        ({}, Mode.REFLECTION),
        ({"goals": [goal()]}, Mode.PLAN_EXECUTION),
        ({"environment": Environment(now=NOW, user_waiting=True)}, Mode.CONVERSATION),
        ({"heartbeat_number": 5}, Mode.CONSOLIDATION),
    ],
)
def test_the_mode_is_chosen_and_part_of_the_situation(view: dict[str, Any], mode: Mode) -> None:
    heartbeat = Answers().run(select_mode(heartbeat_of(situation=situation(**view)))).state
    assert (heartbeat.mode, heartbeat.situation.mode) == (mode.value, mode)


def test_consolidation_has_actions_of_its_own() -> None:
    allowed = ["recall", "maintain", "inquire_deep", "reach_out_user", "brainstorm_goals", "rest"]
    view = situation(heartbeat_number=5, actions=ACTIONS.offers(allowed))
    consolidating = Answers().run(select_mode(heartbeat_of(situation=view, allowed=allowed))).state
    reply = Reply(actions=[ProposedAction(action="inquire_deep", params={"question": "How deep?"})])
    decided = Answers().run(decide(replace(consolidating, reply=reply))).state

    assert [offer.name for offer in consolidating.situation.actions] == ["recall", "maintain", "rest"]
    assert consolidating.allowed == allowed
    (decision,) = decided.decisions
    assert (decision.verdict, CONSOLIDATION_REFUSAL in decision.reason) == (DecisionVerdict.TOO_SOON, True)
    # At any other heartbeat they are offered.
    later = (
        Answers()
        .run(select_mode(heartbeat_of(situation=view.model_copy(update={"heartbeat_number": 6}))))
        .state
    )
    assert len(later.situation.actions) == len(allowed)
