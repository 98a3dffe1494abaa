"""Goals that the heartbeat adds and closes by rule."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from arbor.agents.genome import AgentRole
from arbor.goals.goal_rules import Circumstances
from arbor.goals.values import GoalLayer, GoalSource
from arbor.heartbeat.needs import OpenBacklog
from arbor.heartbeat.results import GoalChangeKind
from arbor.heartbeat.steps.backlog import inject_goals
from arbor.heartbeat.usage import BudgetLevel
from tests.unit.heartbeat.builders import goal as goal_view
from tests.unit.heartbeat.builders import percept, situation
from tests.unit.heartbeat.state_builders import (
    Answers,
    backlog_of,
    goal_row,
    heartbeat_of,
    opening_of,
    run_with_backlog,
)


@pytest.mark.parametrize(
    ("circumstances", "view", "rules"),
    [
        ({}, {}, []),
        ({}, {"degradation": BudgetLevel.CONSERVATION}, []),
        ({}, {"degradation": BudgetLevel.DEGRADATION}, ["survival"]),
        (
            {},
            {
                "degradation": BudgetLevel.DEGRADATION,
                "goals": [goal_view(rule="survival", title="Live within your means")],
            },
            [],
        ),
        ({}, {"percepts": [percept("A market opens.", kind="environment")]}, ["opportunity"]),
        (
            {},
            {"percepts": [percept("Do the step.", kind="environment", detail={"workflow_step": "1"})]},
            [],
        ),
        ({}, {"percepts": [percept("A market opens.")]}, []),
        ({"role": AgentRole.EXPLORER}, {}, ["role"]),
        ({"role": AgentRole.EXPLORER}, {"goals": [goal_view(layer=GoalLayer.ASPIRATION)]}, []),
    ],
)
def test_rules_add_goals_by_the_situation(
    circumstances: dict[str, Any], view: dict[str, Any], rules: list[str]
) -> None:
    backlog = backlog_of()
    opening = opening_of(circumstances=Circumstances(**circumstances))
    result, answers = run_with_backlog(
        inject_goals, heartbeat_of(situation=situation(**view), opening=opening), backlog
    )

    goal_changes = result.present.goal_changes
    assert answers.kinds == ([OpenBacklog] if rules else [])
    assert [(change.kind, change.by_rule) for change in goal_changes] == [
        (GoalChangeKind.CREATED, True)
    ] * len(rules)
    assert [backlog.goal(change.goal_id).rule for change in goal_changes] == rules
    assert result.effects.backlog is (backlog if rules else None)
    # The new goals are part of the same heartbeat's situation, in order.
    ids = {change.goal_id for change in goal_changes}
    assert ids <= {item.id for item in result.situation.goals}
    priorities = [item.priority for item in result.situation.goals]
    assert priorities == sorted(priorities, reverse=True)


def test_the_goal_to_spend_less_is_closed_when_there_is_enough_again() -> None:
    saving = goal_row("means", rule="survival", source=GoalSource.SURVIVAL)
    backlog = backlog_of(saving)
    view = situation(goals=[goal_view(id=str(saving.id), title=saving.title, rule="survival")])
    result, _ = run_with_backlog(inject_goals, heartbeat_of(situation=view, opening=opening_of()), backlog)

    (change,) = result.present.goal_changes
    assert (change.kind, change.change, change.by_rule) == (
        GoalChangeKind.COMPLETED,
        "there is enough again",
        True,
    )
    assert result.situation.goals == []


def test_a_goal_closed_meanwhile_is_skipped_and_reported() -> None:
    missing = str(UUID(int=99))
    view = situation(goals=[goal_view(id=missing, rule="survival")])
    answers = Answers({OpenBacklog: backlog_of()})
    result = answers.run(inject_goals(heartbeat_of(situation=view, opening=opening_of())))
    assert result.changed == (f"Map the harbour: not closed, because there is no open goal {missing}",)
