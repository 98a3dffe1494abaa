"""Goals with notes, plans, intents, linked memories and satisfactions."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.tenants.fields import OnDelete, TenantForeignKey, choices_of, is_share
from apps.tenants.models import TenantModel, TenantRow
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import LinkKind, PlanStatus, StepStatus
from arbor.goals.values import DEFAULT_PRIORITY, MAX_PRIORITY, GoalLayer, GoalSource, GoalState, GoalType
from arbor.tools.names import ACTION_LENGTH


class Goal(TenantRow):
    """A goal of an agent, in a state of the backlog."""

    agent = TenantForeignKey(Agent, related_name="goals")
    parent = TenantForeignKey(
        "self", deleting=OnDelete.SET_NULL, null=True, blank=True, related_name="children"
    )
    title = models.CharField(max_length=300)
    #: The criterion of completion.
    description = models.TextField(blank=True)
    state = models.CharField(max_length=16, choices=choices_of(GoalState))
    layer = models.CharField(max_length=16, choices=choices_of(GoalLayer))
    source = models.CharField(max_length=16, choices=choices_of(GoalSource))
    type = models.CharField(
        max_length=16,
        choices=choices_of(GoalType),
        default=GoalType.ACHIEVE,
        db_default=GoalType.ACHIEVE.value,
    )
    #: The stated priority, 0 to 100; the computed one orders the backlog.
    priority = models.PositiveSmallIntegerField(default=DEFAULT_PRIORITY, db_default=DEFAULT_PRIORITY)
    #: Progress, 0 to 1; for a goal with parts, their mean unless set by hand.
    fraction = models.FloatField(default=0.0)
    fraction_by_hand = models.BooleanField(default=False, db_default=False)
    blocked_by = models.TextField(blank=True)
    #: The goal of the agent that must be closed first, if the blocker is a goal.
    blocked_by_goal = TenantForeignKey(
        "self", deleting=OnDelete.SET_NULL, null=True, blank=True, related_name="+"
    )
    #: The agent's feeling about the goal, -1 to 1.
    emotional_valence = models.FloatField(default=0.0, db_default=0.0)
    #: The expected reward, 0 to 1; empty: computed from the goal's source.
    expected_reward = models.FloatField(null=True, blank=True)
    #: Heartbeats spent on the goal.
    effort = models.PositiveIntegerField(default=0, db_default=0)
    deadline = models.DateTimeField(null=True, blank=True)
    #: The heartbeat, and the rule (`arbor.goals.goal_rules.GoalRule`), that created the goal, if any.
    heartbeat_id = models.UUIDField(null=True, blank=True)
    rule = models.CharField(max_length=12, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    touched_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)
    abandoned_at = models.DateTimeField(null=True, blank=True)
    abandonment_reason = models.TextField(blank=True)

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(fields=["tenant", "agent", "state"], name="goals_goal_backlog"),
            models.Index(
                fields=["tenant", "agent", "rule", "-created_at"],
                name="goals_goal_by_rule",
                condition=models.Q(rule__gt=""),
            ),
            models.Index(
                fields=["tenant", "parent"],
                name="goals_goal_by_parent",
                condition=models.Q(parent__isnull=False),
            ),
            models.Index(
                fields=["tenant", "blocked_by_goal"],
                name="goals_goal_by_blocker",
                condition=models.Q(blocked_by_goal__isnull=False),
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=is_share("fraction"), name="goals_goal_fraction"),
            models.CheckConstraint(
                condition=models.Q(emotional_valence__gte=-1) & models.Q(emotional_valence__lte=1),
                name="goals_goal_valence",
            ),
            models.CheckConstraint(condition=is_share("expected_reward"), name="goals_goal_reward"),
            models.CheckConstraint(
                condition=models.Q(priority__lte=MAX_PRIORITY), name="goals_goal_priority"
            ),
        ]

    def __str__(self) -> str:
        return self.title


class ProgressNote(TenantRow):
    """A note on a goal's progress."""

    goal = TenantForeignKey(Goal, related_name="notes")
    text = models.TextField()
    #: The heartbeat that wrote the note, if any.
    heartbeat_id = models.UUIDField(null=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        indexes = [models.Index(fields=["tenant", "goal", "-at"], name="goals_note_by_goal")]

    def __str__(self) -> str:
        return self.text


class Plan(TenantRow):
    """An explicit way to a goal, in ordered steps."""

    agent = TenantForeignKey(Agent, related_name="plans")
    goal = TenantForeignKey(Goal, related_name="plans")
    status = models.CharField(max_length=10, choices=choices_of(PlanStatus), default=PlanStatus.ACTIVE)
    #: The dependencies of the plan, and those of them that are met: [text].
    dependencies = models.JSONField(default=list)
    met = models.JSONField(default=list, db_default=[], blank=True)
    #: Estimates in heartbeats and in energy.
    estimated_ticks = models.PositiveIntegerField(null=True)
    estimated_cost = models.FloatField(null=True)
    #: 0 to 1, higher is riskier.
    risk = models.FloatField(null=True)
    #: The reason of abandonment.
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["tenant", "agent", "status"], name="goals_plan_by_status"),
            models.Index(fields=["tenant", "goal", "-created_at"], name="goals_plan_by_goal"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "goal"], name="goals_plan_one_active", condition=models.Q(status="active")
            ),
            models.CheckConstraint(condition=is_share("risk"), name="goals_plan_risk"),
        ]

    def __str__(self) -> str:
        return f"{self.status} plan of {self.created_at:%Y-%m-%d %H:%M} UTC"


class PlanStep(TenantRow):
    """A step of a plan, committed as an intent in its turn."""

    plan = TenantForeignKey(Plan, related_name="steps")
    position = models.PositiveSmallIntegerField()
    action = models.CharField(max_length=ACTION_LENGTH)
    description = models.TextField()
    #: The state before, and the state after the step.
    precondition = models.TextField(blank=True)
    postcondition = models.TextField(blank=True)
    estimated_ticks = models.PositiveIntegerField(null=True)
    status = models.CharField(max_length=10, choices=choices_of(StepStatus), default=StepStatus.WAITING)
    #: The memory of the procedure that the step follows, if any; no foreign key, because the memory may be purged.
    procedure_id = models.UUIDField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        verbose_name = "step"
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "plan", "position"], name="goals_step_position"),
        ]

    def __str__(self) -> str:
        return f"{self.position}. {self.action}: {self.description}"


class Intent(TenantRow):
    """One committed step towards a goal."""

    agent = TenantForeignKey(Agent, related_name="intents")
    goal = TenantForeignKey(Goal, related_name="intents")
    #: The step of a plan that the intent commits to, if any.
    step = TenantForeignKey(
        PlanStep, deleting=OnDelete.SET_NULL, null=True, blank=True, related_name="intents"
    )
    action = models.CharField(max_length=ACTION_LENGTH)
    description = models.TextField()
    status = models.CharField(max_length=16, choices=choices_of(IntentStatus), default=IntentStatus.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    last_error = models.TextField(blank=True)
    #: The heartbeat that executes the intent, and the time of the lock.
    locked_by = models.UUIDField(null=True)
    locked_at = models.DateTimeField(null=True)
    #: Heartbeats spent, and their limit (seed 003, 3.10); empty: no limit.
    ticks_used = models.PositiveIntegerField(default=0, db_default=0)
    tick_limit = models.PositiveIntegerField(null=True)
    #: The memory of the procedure that the intent follows, whose outcomes are counted.
    procedure_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(fields=["tenant", "agent", "status"], name="goals_intent_by_status"),
            models.Index(fields=["tenant", "goal"], name="goals_intent_by_goal"),
            models.Index(
                fields=["tenant", "step"], name="goals_intent_by_step", condition=models.Q(step__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action}: {self.description}"


class GoalMemoryLink(TenantRow):
    """A link between a goal and a memory."""

    goal = TenantForeignKey(Goal, related_name="links")
    memory = TenantForeignKey(Memory, related_name="+")
    kind = models.CharField(max_length=10, choices=choices_of(LinkKind))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "goal memory"
        verbose_name_plural = "goal memories"
        indexes = [models.Index(fields=["tenant", "memory"], name="goals_link_by_memory")]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "goal", "memory", "kind"], name="goals_link_once")
        ]

    def __str__(self) -> str:
        return f"{self.kind} of “{self.goal.title}”"


class Satisfaction(TenantRow):
    """The satisfaction of a closed goal: the reinforcement signal of seed 003, 3.9."""

    app_privileges: ClassVar[str] = "SELECT, INSERT"

    agent = TenantForeignKey(Agent, related_name="+")
    goal = TenantForeignKey(Goal, related_name="satisfactions")
    outcome = models.CharField(max_length=10)
    reward_actual = models.FloatField()
    reward_expected = models.FloatField()
    #: The change of the agent's reputation, -1 to 1.
    reputation_delta = models.FloatField(default=0.0)
    #: 0 to 1.
    novelty = models.FloatField()
    #: Heartbeats spent on the goal.
    effort = models.PositiveIntegerField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        ordering = ["-at"]
        indexes = [
            models.Index(fields=["tenant", "agent", "-at"], name="goals_satisfaction_by_agent"),
            models.Index(fields=["tenant", "goal"], name="goals_satisfaction_by_goal"),
        ]

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reward_actual:g} of {self.reward_expected:g}"
