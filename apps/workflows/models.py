"""Workflows, their versions, and their runs with steps."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import OnDelete, TenantForeignKey, choices_of
from apps.tenants.models import TenantModel, TenantRow
from arbor.workflows.values import (
    NAME_LENGTH,
    WorkflowRunStatus,
    WorkflowStepKind,
    WorkflowStepStatus,
    WorkflowTrigger,
)


class Workflow(TenantRow):
    """A named graph of steps, in versions; new runs use the latest one."""

    #: Unique in the tenant, and a segment of `arbor://workflows/execute/NAME`.
    name = models.CharField(max_length=NAME_LENGTH)
    description = models.CharField(max_length=500, blank=True)
    #: The number of the latest version.
    version = models.PositiveIntegerField(default=1)
    #: The agent of steps that name none.
    agent = TenantForeignKey(Agent, deleting=OnDelete.SET_NULL, null=True, blank=True, related_name="+")
    #: Whether new runs may start.
    enabled = models.BooleanField(default=True, db_default=True)
    #: Five fields of cron, and their time zone; empty: no schedule.
    cron = models.CharField(max_length=100, blank=True, default="", db_default="")
    zone = models.CharField(max_length=60, default="UTC", db_default="UTC")
    #: The input of scheduled runs, and the time of the next one.
    scheduled_input = models.JSONField(default=dict, db_default={}, blank=True)
    next_run_at = models.DateTimeField(null=True, blank=True)
    #: Who created it, as an actor of the audit log.
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        ordering = ["name"]
        indexes = [
            models.Index(
                fields=["tenant", "next_run_at"],
                name="workflows_due",
                condition=models.Q(next_run_at__isnull=False),
            ),
            models.Index(
                fields=["tenant", "agent"],
                name="workflows_by_agent",
                condition=models.Q(agent__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="workflows_name_once"),
            models.CheckConstraint(
                condition=models.Q(next_run_at__isnull=True) | (models.Q(enabled=True) & ~models.Q(cron="")),
                name="workflows_due_by_schedule",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class WorkflowVersion(TenantRow):
    """The definition of a workflow as it was at one time. Written once."""

    workflow = TenantForeignKey(Workflow, related_name="versions")
    number = models.PositiveIntegerField()
    #: The graph in DOT, and the SHA-256 of the text.
    source = models.TextField()
    content_hash = models.CharField(max_length=64)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "workflow", "number"], name="workflows_version_once"),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class WorkflowRun(TenantRow):
    """One run of a version of a workflow."""

    workflow = TenantForeignKey(Workflow, related_name="runs")
    version = TenantForeignKey(WorkflowVersion, related_name="runs")
    status = models.CharField(
        max_length=9,
        choices=choices_of(WorkflowRunStatus),
        default=WorkflowRunStatus.RUNNING,
    )
    trigger = models.CharField(max_length=8, choices=choices_of(WorkflowTrigger))
    #: Who started it, as an actor of the audit log.
    started_by = models.CharField(max_length=200)
    #: The agent that started it. No reference: the deletion of an agent, which has locked the schedule, would wait for the run,
    #: while a leg, which has locked the run, waits for the schedule.
    agent_id = models.UUIDField(null=True)
    #: Identifies the start among those of its starter: the slot of a schedule, the action of a heartbeat, the request of a
    #: program. Empty: none.
    key = models.CharField(max_length=200, blank=True, default="")
    input = models.JSONField(default=dict)
    #: `arbor.pipeline.engine.Checkpoint.position()`; empty before the first leg.
    position = models.JSONField(default=dict)
    #: The number of committed legs; the sweep counts a failed leg only if this number is unchanged since it read the run.
    leg = models.PositiveIntegerField(default=0)
    #: The legs in a row that have raised; the sweep walks the run again at `due_at`.
    failed_legs = models.PositiveSmallIntegerField(default=0, db_default=0)
    #: When the sweep walks the run: its message may be lost, a retry is due, or the time of its step is over.
    due_at = models.DateTimeField(null=True)
    #: The name of the exit, and why the run failed or was canceled.
    exit = models.CharField(max_length=NAME_LENGTH, blank=True)
    error = models.TextField(blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        verbose_name = "workflow run"
        ordering = ["-started_at"]
        indexes = [
            models.Index(fields=["tenant", "-started_at"], name="workflows_run_by_time"),
            models.Index(fields=["tenant", "workflow", "-started_at"], name="workflows_run_by_workflow"),
            models.Index(fields=["tenant", "version"], name="workflows_run_by_version"),
            models.Index(
                fields=["tenant", "agent_id"],
                name="workflows_run_by_agent",
                condition=models.Q(agent_id__isnull=False),
            ),
            models.Index(
                fields=["tenant", "due_at"],
                name="workflows_run_due",
                condition=models.Q(due_at__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "workflow", "trigger", "started_by", "key"],
                name="workflows_run_once",
                condition=~models.Q(key=""),
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=["running", "waiting"], ended_at__isnull=True)
                | models.Q(
                    status__in=["succeeded", "failed", "canceled"],
                    ended_at__isnull=False,
                    due_at__isnull=True,
                ),
                name="workflows_run_ended",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.id}: {self.status}"


class WorkflowStep(TenantRow):
    """One step of a run: a visit of a node, with its output."""

    run = TenantForeignKey(WorkflowRun, related_name="steps")
    #: The place in the run, from 1.
    number = models.PositiveIntegerField()
    #: The name of the node.
    name = models.CharField(max_length=NAME_LENGTH)
    kind = models.CharField(max_length=8, choices=choices_of(WorkflowStepKind))
    status = models.CharField(max_length=9, choices=choices_of(WorkflowStepStatus))
    #: The agent on whose behalf a model is asked, or to which the step is delegated.
    agent = TenantForeignKey(Agent, deleting=OnDelete.SET_NULL, null=True, related_name="+")
    #: The prompt, question or task, with the values filled in.
    input = models.TextField(blank=True)
    output = models.TextField(blank=True)
    #: The output as JSON, if the step's format is `json`.
    data = models.JSONField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    #: The error of the last try.
    error = models.TextField(blank=True)
    #: Who approved, denied or completed it, as an actor of the audit log.
    decided_by = models.CharField(max_length=200, blank=True)
    #: The goal of the agent that the step was delegated to; no reference, because the step outlives the goals of a deleted agent.
    goal_id = models.UUIDField(null=True)
    started_at = models.DateTimeField()
    #: When the time for the answer, or the delay before the next try, is over; for an answered step, when the sweep walks its run.
    due_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        verbose_name = "workflow step"
        ordering = ["number"]
        indexes = [
            # `steps_with` reads the latest outputs first. No trigram index: under row-level security PostgreSQL uses
            # none for ILIKE, because that operator is not leakproof.
            models.Index(
                fields=["tenant", "-completed_at"],
                name="workflows_step_searched",
                condition=models.Q(status="succeeded") & ~models.Q(output=""),
            ),
            models.Index(
                fields=["tenant", "status", "kind", "started_at"],
                name="workflows_step_waiting",
                condition=models.Q(status__in=["waiting", "answered"]),
            ),
            models.Index(
                fields=["tenant", "agent", "-started_at"],
                name="workflows_step_by_agent",
                condition=models.Q(agent__isnull=False),
            ),
            # Who handled delegated steps, for agents that give work to others.
            models.Index(
                fields=["tenant", "-completed_at"],
                name="workflows_step_delegated",
                condition=models.Q(kind="delegate", agent__isnull=False, status__in=["succeeded", "failed"]),
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "run", "number"], name="workflows_step_once"),
            models.CheckConstraint(
                condition=models.Q(status__in=["waiting", "answered", "retrying"], completed_at__isnull=True)
                | models.Q(status__in=["succeeded", "failed", "canceled"], completed_at__isnull=False),
                name="workflows_step_completed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.status}"
