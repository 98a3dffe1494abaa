"""The narrative of a heartbeat and its valence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.heartbeat.situation import Mode
from arbor.heartbeat.steps.inner_state import events_of
from arbor.heartbeat.steps.records import narrate
from arbor.quotations import shorten
from arbor.selves.emotions import total_valence
from tests.unit.heartbeat.builders import full_situation, percept, situation


def result(action: str, outcome: ActionOutcome = ActionOutcome.SUCCESS, cost: int = 1) -> ActionResult:
    return ActionResult(index=0, action=action, outcome=outcome, summary=f"used {action}.", cost=cost)


def change(kind: GoalChangeKind, about: str = "") -> GoalChange:
    return GoalChange(kind=kind, title="Map the harbour", change=about, goal_id="g")


def test_the_narrative_contains_thoughts_actions_and_changes() -> None:
    story = narrate(
        situation(mode=Mode.CONVERSATION, percepts=[percept("Where is\nthe ferry?")]),
        Reply(thinking="I should look it up.", concerns=["the fog"]),
        [
            result("recall"),
            result("connect", ActionOutcome.FAILURE),
            result("reach_out_user", ActionOutcome.BLOCKED, cost=0),
        ],
        [change(GoalChangeKind.PROGRESSED, "counted the piers"), change(GoalChangeKind.COMPLETED)],
    )

    assert story == (
        "Heartbeat 3. Somebody was waiting for me. I heard: “Where is the ferry?”. I thought: “I should look it up.” "
        "I used recall. I tried and failed to connect two things: used connect. "
        "I could not write to my user: used reach_out_user. My goal “Map the harbour” went on: counted the piers. "
        "My goal “Map the harbour” is done. It worries me: the fog. I spent 2 energy and have 8 left."
    )


def test_changes_of_one_goal_in_a_row_are_one_sentence() -> None:
    changes = [
        change(GoalChangeKind.PROGRESSED, "counted the piers"),
        change(GoalChangeKind.PROGRESSED, "drew a map"),
    ]
    other = change(GoalChangeKind.PROGRESSED, "asked").model_copy(update={"title": "Find the keeper"})

    story = narrate(situation(), Reply(), [], [*changes, change(GoalChangeKind.COMPLETED), other])

    assert (
        "My goal “Map the harbour” went on: counted the piers; drew a map. My goal “Map the harbour” is done."
        " My goal “Find the keeper” went on: asked." in story
    )


def test_an_unknown_outcome_is_told_as_unknown() -> None:
    story = narrate(situation(), Reply(), [result("mcp.post", ActionOutcome.UNKNOWN)], [])

    assert "I tried to call mcp.post and do not know how it ended: used mcp.post." in story
    assert "I did nothing" not in story
    assert "failed" not in story


@pytest.mark.parametrize(
    ("action", "words"), [("fly_to_moon", "fly to moon"), ("mcp.sky.fly_to_moon", "call mcp.sky.fly_to_moon")]
)
def test_only_a_tool_is_called(action: str, words: str) -> None:
    story = narrate(situation(), Reply(), [result(action, ActionOutcome.BLOCKED)], [])

    assert f"I could not {words}: used {action}." in story


def test_each_action_that_failed_is_named_by_a_phrase_of_its_own() -> None:
    stories = {narrate(situation(), Reply(), [result(name, ActionOutcome.FAILURE)], []) for name in ACTIONS}

    assert len(stories) == len(ACTIONS)
    assert not [story for story in stories if "to call" in story or "_" in story.partition(":")[0]]


@pytest.mark.parametrize("unit", ["action", "tick"])
def test_spending_is_narrated_in_the_unit_of_the_budget(unit: str) -> None:
    view = situation(energy=4, energy_unit=f"{unit}s")

    assert narrate(view, Reply(), [result("recall")], []).endswith(f"I spent 1 {unit} and have 3 left.")
    both = narrate(view, Reply(), [result("recall"), result("reflect")], [])
    assert both.endswith(f"I spent 2 {unit}s and have 2 left.")


def test_nested_quotations_get_single_marks() -> None:
    story = narrate(
        situation(percepts=[percept("She said “come” and “go”.")]),
        Reply(thinking="“Keep the light”, he said."),
        [],
        [change(GoalChangeKind.CREATED).model_copy(update={"title": "See to “the light”"})],
    )

    assert "I heard: “She said ‘come’ and ‘go’”." in story
    assert "I thought: “‘Keep the light’, he said.”" in story
    assert "My goal “See to ‘the light’” is new." in story


def test_an_overlong_text_is_cut_at_a_word_and_its_quotations_close() -> None:
    message = percept("fog " * 73 + "“fog banks lie there”")
    story = narrate(situation(percepts=[message]), Reply(thinking="harbour " * 100), [], [])

    assert "fog fog ‘fog…’”. I thought: “harbour harbour" in story
    assert "harbour harbour…” I did nothing." in story


@pytest.mark.parametrize(
    ("longest", "cut"),
    [
        (40, "The harbour lies in fog."),
        (24, "The harbour lies in fog."),
        (23, "The harbour lies in…"),
        (20, "The harbour lies in…"),
        (19, "The harbour lies…"),
        (3, "Th…"),
    ],
)
def test_a_text_is_cut_at_a_word(longest: int, cut: str) -> None:
    assert shorten("The harbour lies in fog.", longest) == cut


@given(st.text(alphabet="ab “”\n", max_size=80), st.integers(1, 60))
def test_every_truncated_text_fits_and_has_a_mark(text: str, longest: int) -> None:
    cut = shorten(text, longest)
    assert len(cut) <= longest
    assert cut == text or cut.endswith("…")
    assert shorten(cut, longest) == cut


@pytest.mark.parametrize("kind", [GoalChangeKind.COMPLETED, GoalChangeKind.ABANDONED])
def test_a_goal_closed_by_rule_is_narrated_as_such(kind: GoalChangeKind) -> None:
    closed = change(kind, "there is enough again").model_copy(update={"by_rule": True})
    story = narrate(situation(), Reply(), [], [closed])

    assert "My goal “Map the harbour” came to rest by itself: there is enough again." in story


def test_an_uneventful_heartbeat_is_narrated_as_such() -> None:
    story = narrate(situation(), Reply(), [], [])

    assert (
        story
        == "Heartbeat 3. Nothing pressed, so I reflected. I did nothing. I spent 0 energy and have 10 left."
    )


@pytest.mark.parametrize("mode", Mode)
def test_each_mode_has_its_own_opening_sentence(mode: Mode) -> None:
    others = {narrate(situation(mode=other), Reply(), [], []) for other in Mode if other is not mode}

    assert narrate(situation(mode=mode), Reply(), [], []) not in others


def test_a_narrative_never_exceeds_the_length_of_a_memory() -> None:
    reply = Reply(thinking="x" * 8_000, concerns=["y" * 500] * 5)
    story = narrate(full_situation(), reply, [result("z" * 40)] * 60, [])

    assert len(story) <= 4_000


@pytest.mark.parametrize(
    ("results", "changes", "concerns", "expected"),
    [
        ([], [], 0, 0.0),
        ([result("recall")], [], 0, 0.05),
        ([result("rest")], [], 0, 0.1),
        ([result("recall", ActionOutcome.FAILURE)], [], 0, -0.1),
        ([result("recall", ActionOutcome.BLOCKED)], [], 0, -0.1),
        ([result("rest", ActionOutcome.BLOCKED)], [], 0, -0.1),
        ([], [change(GoalChangeKind.COMPLETED)], 0, 0.3),
        ([], [change(GoalChangeKind.ABANDONED)], 0, -0.2),
        ([], [change(GoalChangeKind.REFUSED)], 2, -0.2),
        # The transcript of seed 004, appendix B: four actions that worked and progress on a goal.
        ([result("recall")] * 4, [change(GoalChangeKind.PROGRESSED)], 0, 0.3),
        ([result("recall", ActionOutcome.FAILURE)] * 30, [], 0, -1.0),
        ([], [change(GoalChangeKind.COMPLETED)] * 9, 0, 1.0),
    ],
)
def test_the_valence_of_a_heartbeat_follows_its_events(
    results: list[ActionResult], changes: list[GoalChange], concerns: int, expected: float
) -> None:
    assert total_valence(events_of(Reply(concerns=["c"] * concerns), results, changes)) == pytest.approx(
        expected
    )


@given(
    st.lists(st.sampled_from(ActionOutcome), max_size=20),
    st.lists(st.sampled_from(GoalChangeKind), max_size=20),
)
def test_valence_stays_between_minus_one_and_one(
    outcomes: list[ActionOutcome], kinds: list[GoalChangeKind]
) -> None:
    feeling = total_valence(
        events_of(
            Reply(), [result("recall", outcome) for outcome in outcomes], [change(kind) for kind in kinds]
        )
    )

    assert -1 <= feeling <= 1
