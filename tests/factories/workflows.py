"""Workflows and their runs for tests."""

from __future__ import annotations

import hashlib

import factory

from apps.workflows.models import Workflow, WorkflowRun, WorkflowStep, WorkflowVersion
from arbor.workflows.values import WorkflowRunStatus, WorkflowStepKind, WorkflowStepStatus, WorkflowTrigger
from tests.factories.agents import AgentRowFactory
from tests.factories.rows import TenantRowFactory, minutes_ago

SOURCE = (
    'digraph review { start [shape=Mdiamond]; done [shape=Msquare]; ask [type=approval, question="Publish {input.topic}?"];'
    " start -> ask -> done }"
)


class WorkflowFactory(TenantRowFactory[Workflow]):
    class Meta:
        model = Workflow

    name = factory.Sequence(lambda n: f"review-{n}")
    description = "A person looks at it."
    created_by = "user:eve"


class WorkflowVersionFactory(TenantRowFactory[WorkflowVersion]):
    class Meta:
        model = WorkflowVersion

    workflow = factory.SubFactory(WorkflowFactory)
    number = 1
    source = SOURCE
    content_hash = hashlib.sha256(SOURCE.encode()).hexdigest()
    created_by = "user:eve"


class WorkflowRunFactory(TenantRowFactory[WorkflowRun]):
    class Meta:
        model = WorkflowRun

    workflow = factory.SelfAttribute("version.workflow")
    version = factory.SubFactory(WorkflowVersionFactory)
    status = WorkflowRunStatus.WAITING
    trigger = WorkflowTrigger.PERSON
    started_by = "user:eve"
    input = factory.LazyFunction(lambda: {"topic": "the reef"})
    position = factory.LazyFunction(
        lambda: {"cursor": "ask", "visits": {"start": 1, "ask": 1}, "waiting": True, "steps": 1}
    )
    leg = 1


class WorkflowStepFactory(AgentRowFactory[WorkflowStep]):
    class Meta:
        model = WorkflowStep

    run = factory.SubFactory(WorkflowRunFactory)
    number = 1
    name = "ask"
    kind = WorkflowStepKind.APPROVAL
    status = WorkflowStepStatus.WAITING
    input = "Publish the reef?"
    attempts = 1
    started_at = factory.LazyFunction(lambda: minutes_ago(20))
