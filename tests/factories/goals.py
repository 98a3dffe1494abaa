"""Goals and plans for tests."""

from __future__ import annotations

import factory

from apps.goals.models import (
    Goal,
    GoalMemoryLink,
    Intent,
    Plan,
    PlanStep,
    ProgressNote,
    Satisfaction,
)
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import LinkKind
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from tests.factories.agents import AgentRowFactory
from tests.factories.memories import MemoryFactory
from tests.factories.rows import TenantRowFactory, minutes_ago


class GoalFactory(AgentRowFactory[Goal]):
    class Meta:
        model = Goal

    title = factory.Sequence(lambda n: f"Map region {n}")
    description = "Every path is on the map."
    state = GoalState.ACTIVE
    layer = GoalLayer.OBJECTIVE
    source = GoalSource.CURIOSITY
    fraction = 0.4
    touched_at = factory.LazyFunction(lambda: minutes_ago(20))


class ProgressNoteFactory(TenantRowFactory[ProgressNote]):
    class Meta:
        model = ProgressNote

    goal = factory.SubFactory(GoalFactory)
    text = factory.Sequence(lambda n: f"Found path {n}.")


class IntentFactory(AgentRowFactory[Intent]):
    class Meta:
        model = Intent

    goal = factory.SubFactory(GoalFactory, agent=factory.SelfAttribute("..agent"))
    action = "recall"
    description = "Recall what is known of the river."
    status = IntentStatus.PENDING


class PlanFactory(AgentRowFactory[Plan]):
    class Meta:
        model = Plan

    goal = factory.SubFactory(GoalFactory, agent=factory.SelfAttribute("..agent"))
    risk = 0.2
    estimated_ticks = 3


class PlanStepFactory(TenantRowFactory[PlanStep]):
    class Meta:
        model = PlanStep

    plan = factory.SubFactory(PlanFactory)
    position = factory.Sequence(lambda n: n + 1)
    action = "recall"
    description = "Recall what is known of the river."


class GoalMemoryLinkFactory(TenantRowFactory[GoalMemoryLink]):
    class Meta:
        model = GoalMemoryLink

    goal = factory.SubFactory(GoalFactory)
    memory = factory.SubFactory(MemoryFactory, agent=factory.SelfAttribute("..goal.agent"))
    kind = LinkKind.PROGRESS


class SatisfactionFactory(AgentRowFactory[Satisfaction]):
    class Meta:
        model = Satisfaction

    goal = factory.SubFactory(GoalFactory, agent=factory.SelfAttribute("..agent"))
    outcome = "success"
    reward_actual = 0.8
    reward_expected = 0.6
    novelty = 0.2
    effort = 4
