"""Search the outputs of completed steps (seed 001, source 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.tenants.scope import current_tenant
from apps.workflows.models import WorkflowStep
from arbor.workflows.values import WorkflowStepStatus


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundStep:
    """A completed step whose output contains the term."""

    step_id: UUID
    run_id: UUID
    workflow: str
    step: str
    output: str
    completed_at: datetime


def steps_with(term: str) -> QuerySet[WorkflowStep, Any]:
    """Return a row for each succeeded step of the current tenant whose output contains a text, regardless of case, the latest first.

    `found_steps` makes values of the rows.
    """
    found: QuerySet[WorkflowStep, Any] = (
        WorkflowStep.objects.filter(
            tenant_id=current_tenant(), status=WorkflowStepStatus.SUCCEEDED, output__icontains=term
        )
        .exclude(output="")
        .order_by("-completed_at", "-id")
        .values_list("id", "run_id", "run__workflow__name", "name", "output", "completed_at")
    )
    return found


def found_steps(rows: Iterable[tuple[Any, ...]]) -> tuple[FoundStep, ...]:
    """Return the rows of `steps_with` as values."""
    return tuple(
        FoundStep(
            step_id=step_id, run_id=run_id, workflow=workflow, step=step, output=output, completed_at=at
        )
        for step_id, run_id, workflow, step, output, at in rows
        if at is not None
    )
