"""The choice of the past that bears on a heartbeat's work."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from arbor.authority.approvals import ApprovalStatus
from arbor.authority.precedents import Precedent, precedents_for
from arbor.contacts.cooldown import REACH_OUT_PUBLIC, REACH_OUT_USER
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.influence import (
    ATTEMPTS_SHOWN,
    DelegatedStep,
    PastAttempt,
    PastConduct,
    choose_attempts,
    choose_lessons,
    choose_publications,
    influence_of,
    rank_handlers,
    read_past,
    tally,
    task_texts,
    writes_for_people,
)
from arbor.heartbeat.situation import ApprovalRequestView
from arbor.heartbeat.views import AttemptView, ExperienceView, PublicationView
from arbor.memory.text.overlap import MIN_LIKENESS, likeness
from tests.unit.heartbeat.builders import NOW, goal, intent, percept, situation

TASK = "Please chart the south reef with the boat"


def attempt(title: str, outcome: str) -> PastAttempt:
    return PastAttempt(view=AttemptView(title=title, outcome=outcome, at=NOW))


def experience(about: str, outcome: str = "success", lesson: str = "", **changes: Any) -> ExperienceView:
    return ExperienceView(
        **{"action": "recall", "about": about, "outcome": outcome, "lesson": lesson} | changes
    )


def precedent(number: int, about: str = "", *, action: str = "rest", approved: bool = True) -> Precedent:
    return Precedent(
        id=UUID(int=number),
        action=action,
        about=about,
        approved=approved,
        reason="",
        decided_by="user:nora",
        decided_at=NOW + timedelta(minutes=number),
    )


@pytest.mark.parametrize(
    ("text", "is_like"),
    [
        ("Chart the north reef", True),
        ("Charting reefs", True),
        # One shared word of several is a coincidence; a text of one word is about that word.
        ("Paint the boat house green", False),
        ("reef", True),
        ("Bake bread", False),
        ("", False),
        ("the of and", False),
    ],
)
def test_texts_about_the_matter_of_a_task_are_alike(text: str, is_like: bool) -> None:
    assert (likeness(text, TASK) >= MIN_LIKENESS) is is_like
    assert likeness(text, TASK) == likeness(TASK, text)


def test_failed_attempts_come_first_each_once() -> None:
    attempts = [
        attempt("Chart the north reef", "success"),
        attempt("Chart the east reef", "partial"),
        attempt("Chart the west reef", "failure"),
        attempt("Chart the west reef", "success"),
        attempt("Chart the inner reef", "open"),
        attempt("Bake bread", "failure"),
    ]
    chosen = choose_attempts(attempts, [TASK])
    assert [view.outcome for view in chosen] == ["failure", "partial", "open", "success"]
    assert len(choose_attempts([attempt(f"Chart reef {n}", "failure") for n in range(9)], [TASK])) == (
        ATTEMPTS_SHOWN
    )
    assert choose_attempts(attempts, []) == []


@pytest.mark.parametrize(
    ("view", "tasks"),
    [
        ({"percepts": [percept(TASK, kind="user_message")]}, [TASK]),
        # News is no task, unless it hands over a step of a workflow.
        ({"percepts": [percept("It rains", kind="environment")]}, []),
        ({"percepts": [percept("Draw", kind="environment", detail={"workflow_step": "1"})]}, ["Draw"]),
        ({"goals": [goal(title="Chart", description="it")]}, ["Chart it"]),
        ({"goals": [goal(effort=2)]}, []),
        ({"goals": [goal(layer="aspiration")]}, []),
    ],
)
def test_messages_steps_and_new_goals_are_tasks(view: dict[str, Any], tasks: list[str]) -> None:
    assert task_texts(situation(**view)) == tasks


def test_lessons_of_like_situations_come_before_failures() -> None:
    lessons = [
        experience("the tide", "failure", "Avoid tides.", heartbeat_number=9),
        experience("the reef", "success", "Chart it.", heartbeat_number=1),
        experience("the reef", "failure", "Not at night.", heartbeat_number=2),
        experience("the reef chart", heartbeat_number=3),
    ]
    assert [entry.lesson for entry in choose_lessons(lessons, ["Chart the reef"])] == [
        "Not at night.",
        "Chart it.",
        "Avoid tides.",
    ]
    assert [entry.lesson for entry in choose_lessons(lessons)] == [
        "Avoid tides.",
        "Not at night.",
        "Chart it.",
    ]
    (counted,) = tally(lessons, ["Chart the reef"])
    assert (counted.attempts, counted.successes) == (3, 2)


def test_lessons_are_about_actions_that_are_offered() -> None:
    past = PastConduct(
        experiences=[experience("the reef", "success", "Publish again.", action=REACH_OUT_PUBLIC)]
    )
    chosen = influence_of(situation(actions=[]), past)
    assert (chosen["experiences"], chosen["tallies"]) == ([], [])


def test_a_repeated_lesson_is_shown_once() -> None:
    lessons = [
        experience("the reef", "partial", "Known already.", heartbeat_number=3),
        experience("the reef", "partial", "Known already.", heartbeat_number=2),
        experience("the tide", "partial", "Ask first.", heartbeat_number=1),
    ]
    assert [(entry.lesson, entry.heartbeat_number) for entry in choose_lessons(lessons)] == [
        ("Known already.", 3),
        ("Ask first.", 1),
    ]


def test_precedents_are_of_the_same_action_or_matter_denials_first() -> None:
    decided = [
        precedent(1, "The reef is charted", action=REACH_OUT_PUBLIC),
        precedent(2, "The reef is charted", action=REACH_OUT_PUBLIC, approved=False),
        precedent(3, "Bread", action=REACH_OUT_PUBLIC),
        precedent(4, "Chart of the reef"),
        precedent(5, "Bread"),
    ]
    found = precedents_for(action=REACH_OUT_PUBLIC, about="The charted reef", decided=decided)
    assert [precedent.id.int for precedent in found] == [2, 1, 4, 3]


def test_requests_in_the_prompt_are_no_precedents() -> None:
    shown = ApprovalRequestView(
        id=str(UUID(int=2)), status=ApprovalStatus.PENDING, action=REACH_OUT_PUBLIC, about="The reef"
    )
    past = PastConduct(decisions=[precedent(1, "The reef"), precedent(2, "The reef", approved=False)])
    (only,) = influence_of(situation(approvals=[shown]), past)["precedents"]
    assert only.approved


@pytest.mark.parametrize(
    ("actions", "planned", "expected"),
    [
        ([REACH_OUT_PUBLIC], "look", True),
        ([REACH_OUT_USER], REACH_OUT_USER, True),
        ([REACH_OUT_USER], "observe", False),
        (["rest"], REACH_OUT_USER, False),
    ],
)
def test_publishers_and_planned_messages_write_for_people(
    actions: list[str], planned: str, expected: bool
) -> None:
    served = goal()
    view = situation(
        actions=ACTIONS.offers(actions), goals=[served], intents=[intent(goal_id=served.id, action=planned)]
    )
    assert writes_for_people(view) is expected


def test_results_of_workflows_count_only_about_the_same_matter() -> None:
    texts = [
        PublicationView(audience="workflow", content="report, views: bread", at=NOW, outcome="3 views"),
        PublicationView(audience="public", content="Bread is good", at=NOW, outcome="read"),
        PublicationView(audience="workflow", content="report, views: reef chart", at=NOW, outcome="90 views"),
    ]
    assert [text.outcome for text in choose_publications(texts, [TASK])] == ["90 views", "read"]


def test_handlers_are_ranked_by_their_share_of_completed_steps() -> None:
    def step(agent: str, completed: bool, about: str = "Chart a reef", tries: int = 1) -> DelegatedStep:
        return DelegatedStep(
            agent=agent,
            about=about,
            completed=completed,
            tries=tries,
            error="" if completed else "it was dark",
        )

    steps = [
        step("Bert", False),
        step("Bert", True, tries=2),
        step("Cleo", True),
        step("Dora", True, "Bread"),
    ]
    cleo, bert = rank_handlers(steps, [TASK])
    assert (cleo.name, cleo.completed, cleo.steps, cleo.error) == ("Cleo", 1, 1, "")
    assert (bert.name, bert.completed, bert.steps, bert.tries, bert.error) == (
        "Bert",
        1,
        2,
        1.5,
        "it was dark",
    )


@pytest.mark.parametrize(
    ("status", "is_read", "answers", "outcome"),
    [
        ("sent", False, 0, "delivered, no reaction"),
        ("sent", True, 0, "read, not answered"),
        ("sent", True, 2, "answered 2 times, at last: thanks"),
        ("failed", False, 0, "not delivered (failed): no route"),
        ("pending", False, 0, "not delivered yet"),
    ],
)
def test_the_outcome_of_a_publication_is_stated_in_words(
    status: str, is_read: bool, answers: int, outcome: str
) -> None:
    row = ["user", "The reef", NOW.isoformat(), status, "no route", is_read, answers, "thanks"]
    columns = dict.fromkeys(("attempts", "experiences", "decisions", "step_results", "delegations"), ())
    (shown,) = read_past({**columns, "publications": [row]}).publications
    assert shown.outcome == outcome
