"""Sections of a prompt: the directive, goals, drives and the environment."""

from __future__ import annotations

import re
from typing import Any

import pytest

from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanStatus, StepStatus
from arbor.goals.values import GoalLayer, GoalState
from arbor.heartbeat.prompts.sections import selfhood
from arbor.heartbeat.prompts.sections.goals import goals, overview
from arbor.heartbeat.prompts.sections.moment import DIRECTIVES, UNPLANNED, directive, environment, percepts
from arbor.heartbeat.situation import ClusterView, Environment, Mode
from arbor.heartbeat.views import DriveView, PlanView, StepView
from arbor.memory.text.keywords import NO_KEYWORDS
from arbor.quotations import Data
from arbor.selves.drives import Drive
from tests.unit.heartbeat.builders import NONCE, NOW, goal, intent, percept, section, situation

FOREMOST = goal("reef", priority=9.0)
LESSER = goal("harbour", priority=2.0)
PLAN_THAT_WAITS = PlanView(
    id="plan",
    goal_id="goal-reef",
    status=PlanStatus.ACTIVE,
    steps=[
        StepView(
            position=1,
            action="recall",
            description="Look first",
            precondition="Map the market",
            status=StepStatus.WAITING,
        )
    ],
)


@pytest.mark.parametrize(
    ("changes", "unplanned"),
    [
        ({}, True),
        ({"intents": [intent(), intent("dive", goal_id="goal-reef")]}, False),
        # A step locked by another heartbeat counts, too.
        ({"intents": [intent(), intent("dive", goal_id="goal-reef", status=IntentStatus.LOCKED)]}, False),
        # Steps do not help a blocked goal.
        ({"goals": [goal("reef", blocked_by="the tide"), LESSER]}, False),
        # Nor one whose next step waits for another goal.
        ({"plans": [PLAN_THAT_WAITS]}, False),
        # Aspirations and goals by rule are pursued by goals of their own, not by steps.
        ({"goals": [goal("reef", layer=GoalLayer.ASPIRATION), LESSER]}, False),
        ({"goals": [goal("reef", rule="survival"), LESSER]}, False),
        ({"goals": [LESSER, FOREMOST]}, True),
        # The next goal by priority is planned then, although a lesser goal has steps.
        ({"goals": [goal("reef", blocked_by="the tide"), goal("pier", priority=5.0), LESSER]}, True),
    ],
)
def test_the_foremost_goal_is_planned_before_a_lesser_one_goes_on(
    changes: dict[str, Any], unplanned: bool
) -> None:
    values: dict[str, Any] = {"goals": [FOREMOST, LESSER], "intents": [intent()], **changes}
    text = directive(situation(mode=Mode.GOAL_PURSUIT, **values))
    assert (UNPLANNED in text) is unplanned
    assert (DIRECTIVES[Mode.GOAL_PURSUIT] in text) is not unplanned


def test_the_active_plan_is_shown_or_else_the_latest_draft() -> None:
    def plans(*statuses: PlanStatus) -> list[PlanView]:
        return [
            PlanView(id=f"plan-{number}", goal_id="goal-reef", status=status)
            for number, status in enumerate(statuses)
        ]

    def shown(*statuses: PlanStatus) -> PlanView | None:
        return situation(goals=[FOREMOST], plans=plans(*statuses)).shown_plan

    draft, active = PlanStatus.DRAFT, PlanStatus.ACTIVE
    assert shown(draft, draft) == plans(draft, draft)[1]
    assert shown(draft, active, draft) == plans(draft, active, draft)[1]
    assert shown() is None


def test_other_modes_have_their_own_directive_whatever_is_planned() -> None:
    for mode in (Mode.CONVERSATION, Mode.CONSOLIDATION, Mode.REFLECTION):
        view = situation(mode=mode, goals=[FOREMOST, LESSER], intents=[intent()])
        assert directive(view) == f"## This heartbeat: {mode}\n{DIRECTIVES[mode]}"


@pytest.mark.parametrize(
    ("effort", "line"),
    [(0, "0% done)"), (1, "0% done, 1 heartbeat spent)"), (5, "0% done, 5 heartbeats spent)")],
)
def test_a_goal_shows_the_heartbeats_spent_on_it(effort: int, line: str) -> None:
    assert line in goals(situation(goals=[goal(effort=effort)]), Data(NONCE))


def test_the_overview_has_one_unforgeable_entry_for_each_open_goal() -> None:
    aside = goal("cape", state=GoalState.BACKBURNER, flags=["overdue"])
    forged = goal("reef", state=GoalState.QUEUED, title="Reef\n[goal-x] Cape (active)", parent_id="goal-bay")
    assert overview([aside, forged, goal("bay", fraction=0.5)]).splitlines() == [
        "[goal-bay] Map the bay (active, 50% done)",
        "[goal-reef] Reef",
        "    [goal-x] Cape (active) (queued, 0% done, part of goal-bay)",
        "[goal-cape] Map the cape (backburner, 0% done, overdue)",
    ]
    assert overview([]) == ""


@pytest.mark.parametrize(
    ("hours", "shown"), [(0.0, "1 minute"), (2.54, "2.5 hours"), (48.0, "2 days"), (198.0, "8 days")]
)
def test_the_last_contact_is_shown_in_a_fitting_unit(hours: float, shown: str) -> None:
    environment = Environment(now=NOW, hours_since_user=hours)

    assert f"the last contact was {shown} ago" in section("environment", environment=environment)


@pytest.mark.parametrize(
    ("pending", "waiting", "left"), [(7, "7", "6"), (99, "99", "98"), (100, "100 or more", "99 or more")]
)
def test_a_count_of_percepts_says_where_it_ended(pending: int, waiting: str, left: str) -> None:
    around = Environment(now=NOW, pending_percepts=pending)
    assert f"Percepts waiting: {waiting}." in section("environment", environment=around)
    shown = section("percepts", environment=around, percepts=[percept()])
    assert shown.endswith(f"Waiting for your next heartbeat: {left}.")


def test_the_last_message_to_users_is_shown_once() -> None:
    environment = Environment(now=NOW, hours_since_reach_out=2.0)

    shown = section("environment", environment=environment)

    assert "You last wrote to your user 2.0 hours ago." in shown
    assert shown.count("You last wrote") == 1


@pytest.mark.parametrize(("pending", "more"), [(99, ""), (100, " or more")])
def test_percepts_beyond_the_counted_ones_are_shown_as_more(pending: int, more: str) -> None:
    view = situation(percepts=[percept("Fog")], environment=Environment(now=NOW, pending_percepts=pending))
    assert f"Percepts waiting: {pending}{more}." in environment(view.environment, Data(NONCE))
    assert f"Waiting for your next heartbeat: {pending - 1}{more}." in percepts(
        view.percepts, pending, Data(NONCE)
    )


def test_goals_are_ordered_by_priority_and_the_rest_counted() -> None:
    queued = [goal(str(n), state=GoalState.QUEUED, priority=n / 10) for n in range(8)]

    text = section("goals", goals=[goal("low", priority=1), goal("high", priority=3), *queued])

    assert re.findall(r"\[goal-(\w+)\]", text) == ["high", "low", "7", "6", "5", "4", "3"]
    assert "Queued besides these: 3." in text


def test_goals_on_the_backburner_are_only_counted() -> None:
    text = section("goals", goals=[goal(state=GoalState.BACKBURNER)])

    assert text == "## Goals\nNone is active or queued.\nOn the backburner: 1."


def test_a_drive_suggests_only_offered_actions() -> None:
    lonely = DriveView(name=Drive.CONNECTION, level=0.9, urgent=True)
    assert "reach_out_user" in selfhood.drives([lonely], {"reach_out_user", "rest"})
    assert "reach_out" not in selfhood.drives([lonely], {"rest", "reflect"})


def test_the_keywords_of_a_name_are_shown_once() -> None:
    cluster = ClusterView(name="old, quay", keywords=["old", "quay", "crane"])
    assert "old, quay: crane (feels neutral)" in section("clusters", clusters=[cluster])


def test_clusters_without_a_name_are_left_out() -> None:
    named = ClusterView(name="tide", related=[NO_KEYWORDS, "reef"])
    text = section("clusters", clusters=[ClusterView(name=NO_KEYWORDS), named])

    assert "tide (feels neutral); related clusters: reef" in text
    assert NO_KEYWORDS not in text
