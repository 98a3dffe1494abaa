"""Reflection and consolidation of the reflex policy."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from arbor.goals.values import GoalLayer, GoalState
from arbor.heartbeat.reflex.choices import gist
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.results import GoalChange, GoalChangeKind
from arbor.heartbeat.situation import Mode, PerceptView
from arbor.heartbeat.steps.records import narrate
from arbor.heartbeat.views import DriveView
from arbor.heartbeat.working_memory import Thought, WorkingMemory
from arbor.memory.values import MemoryType
from arbor.selves.drives import Drive
from tests.unit.heartbeat.builders import (
    NOW,
    action_names,
    goal,
    memory,
    percept,
    reflex,
    situation,
)
from tests.unit.heartbeat.state_builders import result_of


def test_consolidation_connects_memories_that_share_most_words() -> None:
    reply = reflex(
        situation(
            mode=Mode.CONSOLIDATION,
            recent=[
                memory("a", content="Bread is baked at dawn"),
                memory("b", content="The lighthouse keeper counts ferries"),
                memory("c", content="Ferries pass the lighthouse at night"),
            ],
        )
    )

    connect, reflect = reply["actions"][:2]
    assert connect["params"] == {"from_id": "memory-b", "to_id": "memory-c", "relation": "associated"}
    assert "lighthouse, ferries" in reflect["params"]["insight"]
    assert "“Ferries pass the lighthouse at night”" in reflect["params"]["insight"]


def test_consolidation_sums_up_only_memories_of_its_subject() -> None:
    contents = {
        "a": "The lighthouse keeper counts ferries",
        "b": "Ferries pass the lighthouse at night",
        "c": "The lighthouse was painted",
        "d": "Harvest begins",
        "e": "The harvest ended",
    }
    recent = [memory(name, content=content) for name, content in contents.items()]
    synthesize = reflex(situation(mode=Mode.CONSOLIDATION, recent=recent))["actions"][2]

    assert synthesize["params"]["topic"] == "lighthouse"
    assert all(contents[name] in synthesize["params"]["content"] for name in "abc")
    assert "arvest" not in synthesize["params"]["content"]


def test_consolidation_does_not_connect_memories_already_thought_of() -> None:
    views = [memory("pier"), memory("crane")]
    first = reflex(situation(mode=Mode.CONSOLIDATION, recent=views))
    insight = memory(
        "own", role="", content=first["actions"][1]["params"]["insight"], type=MemoryType.SEMANTIC
    )
    again = reflex(situation(mode=Mode.CONSOLIDATION, recent=[*views, insight]))

    assert action_names(first) == ["connect", "reflect"]
    assert action_names(again) == ["rest"]
    assert again["thinking"] != first["thinking"]


def test_memories_with_equal_texts_are_not_connected() -> None:
    twice = [memory("a", content="I value  patience."), memory("b", content="I value patience.")]

    assert action_names(reflex(situation(mode=Mode.CONSOLIDATION, recent=twice))) == ["reflect"]


def test_reflection_ignores_the_answers_of_the_agent() -> None:
    answered = memory("own", role="agent", content="I answer by rule.")

    for recent in ([answered], [answered, memory("pier")]):
        reply = reflex(situation(recent=recent, heartbeat_number=2))

        assert "I answer by rule" not in reply["thinking"]


def test_consolidation_without_similar_memories_reflects_or_rests() -> None:
    assert action_names(reflex(situation(mode=Mode.CONSOLIDATION, recent=[memory()]))) == ["reflect"]
    assert action_names(reflex(situation(mode=Mode.CONSOLIDATION))) == ["rest"]


def test_reflection_resolves_its_question_and_adds_another() -> None:
    reply = reflex(
        situation(
            recent=[memory("pier", content="The pier was rebuilt by Aurelio")],
            working_memory=WorkingMemory(curiosity=["who built the pier?"]),
        )
    )

    assert action_names(reply) == ["reflect", "recall"]
    assert "The pier was rebuilt" in reply["actions"][0]["params"]["insight"]
    assert reply["actions"][1]["params"]["query"] == "Aurelio"
    assert reply["resolved"] == ["who built the pier?"]
    assert reply["curiosity"] == ["more about “Aurelio”"]
    assert reply["new_goals"] == []


def test_reflection_sums_up_several_memories() -> None:
    reply = reflex(
        situation(
            recent=[memory("pier"), memory("crane")],
            working_memory=WorkingMemory(curiosity=["more about “pier”"]),
        )
    )

    summary = reply["actions"][0]
    assert action_names(reply)[:2] == ["synthesize", "connect"]
    assert summary["params"]["materials"] == ["memory-pier", "memory-crane"]
    assert summary["params"]["content"].startswith("About “pier”: Ada said “The pier was rebuilt")


def test_a_reflection_is_not_repeated() -> None:
    views = [memory("pier")]
    first = reflex(situation(recent=views))
    insight = memory(
        "own", role="", content=first["actions"][0]["params"]["insight"], type=MemoryType.SEMANTIC
    )
    again = reflex(situation(recent=[*views, insight]))
    thought = WorkingMemory(thoughts=[Thought(text=first["thinking"], at=NOW)])

    assert "reflect" in action_names(first)
    for reply in (again, reflex(situation(recent=views, working_memory=thought))):
        assert {"reflect", "synthesize"}.isdisjoint(action_names(reply))


def test_an_empty_mind_creates_no_goals() -> None:
    for energy in (2, 10):
        reply = reflex(situation(energy=energy))

        assert (action_names(reply), reply["new_goals"]) == (["rest"], [])


def test_reflection_without_news_goes_back_to_each_subject() -> None:
    goals = [goal(title=title, layer=GoalLayer.ASPIRATION) for title in ("Mend the pier", "Count the seals")]
    replies = [reflex(situation(goals=goals, heartbeat_number=number)) for number in (1, 2)]

    assert [action_names(reply) for reply in replies] == [["recall"], ["recall"]]
    assert {reply["actions"][0]["params"]["query"] for reply in replies} == {
        "Mend the pier",
        "Count the seals",
    }
    assert all(reply["curiosity"] == [] for reply in replies)


def test_reflection_without_news_thinks_of_each_old_memory() -> None:
    own = memory("own", role="", content="What stays with me is this: “The pier.”", type=MemoryType.SEMANTIC)
    known = [
        memory(name, role="", content=f"The {name} was rebuilt by Aurelio", type=MemoryType.SEMANTIC)
        for name in ("pier", "crane")
    ]
    thoughts = [Thought(text=view.content, at=NOW) for view in known]
    replies = [
        reflex(
            situation(
                relevant=[own, *known],
                goals=[goal(layer=GoalLayer.ASPIRATION)],
                working_memory=WorkingMemory(thoughts=thoughts),
                heartbeat_number=number,
            )
        )
        for number in (1, 2, 3)
    ]
    assert all(
        "Nothing new has reached me. I think again of this: “The " in reply["thinking"] for reply in replies
    )
    assert replies[0]["thinking"] == replies[2]["thinking"] != replies[1]["thinking"]
    # The memory leads to the next question.
    assert all(reply["curiosity"] == ["more about “Aurelio”"] for reply in replies)


def test_an_old_subject_is_looked_for_again() -> None:
    known = memory("pier", role="", content="The pier was rebuilt by Aurelio", type=MemoryType.SEMANTIC)
    wondered = "I wondered: more about “Aurelio”."
    for days, found in ((2, []), (4, ["more about “Aurelio”"])):
        thoughts = [
            Thought(text=wondered, at=NOW - timedelta(days=days)),
            Thought(text=known.content, at=NOW),
        ]
        view = situation(relevant=[known], working_memory=WorkingMemory(thoughts=thoughts))
        assert reflex(view)["curiosity"] == found


def test_the_beginning_of_a_request_is_no_subject() -> None:
    asked = memory("asked", role="", content="See to it: Please write to Falk", type=MemoryType.SEMANTIC)

    assert reflex(situation(relevant=[asked]))["curiosity"] == ["more about “Falk”"]


def test_an_urgent_need_for_rest_is_met() -> None:
    tired = situation(recent=[memory("pier")], drives=[DriveView(name=Drive.REST, level=0.9, urgent=True)])

    assert action_names(reflex(tired)) == ["rest"]


@pytest.mark.parametrize(("state", "up"), [(GoalState.QUEUED, "active"), (GoalState.BACKBURNER, "queued")])
def test_reflection_promotes_a_waiting_goal(state: GoalState, up: str) -> None:
    reply = reflex(situation(goals=[goal(state=state)]))

    assert reply["actions"][-1]["params"] == {"goal_id": "goal-harbour", "state": up}
    assert reply["new_goals"] == []


def test_an_insight_is_no_material_of_another() -> None:
    own = memory(
        "own",
        role="",
        content="What stays with me is this: Ada said “the pier is old”.",
        type=MemoryType.SEMANTIC,
    )

    assert action_names(reflex(situation(recent=[own]))) == ["rest"]


def test_a_thought_about_nested_quotations_cites_the_innermost() -> None:
    own = memory("own", role="", content="I thought: “Ada said ‘the pier isn’t old’. So.” I spent 2 energy.")

    insight = reflex(situation(recent=[own]))["actions"][0]["params"]["insight"]

    assert insight.startswith("What stays with me is this: “the pier isn’t old”.")


HEARD = [percept("Where is “the ferry”?")]


@pytest.mark.parametrize(
    ("thinking", "percepts", "cited"),
    [
        ("I think of this: Ada said “the pier is old”.", [], "the pier is old"),
        ("I think of this: Ada said “the pier is old”.", HEARD, "the pier is old"),
        ("The pier is old.", [], "The pier is old."),
        ("The pier is old.", HEARD, "The pier is old."),
        ("", HEARD, "the ferry"),
    ],
)
def test_of_a_narrative_the_thought_is_cited(thinking: str, percepts: list[PerceptView], cited: str) -> None:
    recalled = result_of("recall", summary="recalled 1 memory about “the ferry”: I thought: “It is late.”")
    progress = GoalChange(kind=GoalChangeKind.PROGRESSED, title="Map the harbour", change="drew “a map”")
    story = narrate(situation(percepts=percepts), Reply(thinking=thinking), [recalled], [progress])
    told = situation(
        mode=Mode.CONVERSATION, percepts=[percept()], relevant=[memory("own", role="", content=story)]
    )

    assert f"It reminds me of “{cited}”." in reflex(told)["thinking"]


def test_of_a_narrative_without_a_thought_no_query_is_cited() -> None:
    recalled = result_of("recall", summary="recalled 1 memory about “the ferry”")
    story = narrate(situation(), Reply(), [recalled], [])
    assert "“the ferry”" in story

    cited = gist(memory(content=story, role=""))

    assert cited.startswith(story[:20])


def test_a_quotation_within_a_quotation_uses_single_marks() -> None:
    quoted = memory("said", role="Ada", content="He said “come”.")
    reply = reflex(situation(recent=[quoted]))

    assert "I think of this: Ada said “He said ‘come’.”" in reply["thinking"]


@pytest.mark.parametrize("text", ["“" + "a" * 20_000 + "“b", "‘" + "’a" * 10_000 + "“b"])
def test_an_open_quotation_of_a_long_text_takes_no_time(text: str) -> None:
    started = time.process_time()
    cited = gist(memory(content=text, role=""))

    assert cited == "b"
    assert time.process_time() - started < 1


@pytest.mark.parametrize(("letters", "subjects"), [(40, 1), (41, 0)])
def test_a_string_too_long_for_a_word_is_no_subject(letters: int, subjects: int) -> None:
    text = f"the key is {'abcde' * 8}{'f' * (letters - 40)}"
    view = situation(recent=[memory(content=text), memory("b", content=text + " too")])

    assert len(reflex(view)["curiosity"]) == subjects
    consolidated = reflex(view.model_copy(update={"mode": Mode.CONSOLIDATION}))
    assert ("both speak of" in consolidated["thinking"]) is bool(subjects)
    if subjects:
        thoughts = [Thought(text=line, at=NOW) for line in reflex(view)["curiosity"]]
        known = view.model_copy(update={"working_memory": WorkingMemory(thoughts=thoughts)})
        assert reflex(known)["curiosity"] == []
