"""Create, change and delete workflows, with their versions and schedules."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.agents.services.lookup import find_agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.tenants.limits import check_row_limit
from apps.tenants.names import insert_named_row, list_names
from apps.tenants.scope import current_tenant
from apps.workflows.models import Workflow, WorkflowRun, WorkflowVersion
from arbor.audit.changes import AuditChange, change_of
from arbor.clock import find_time_zone
from arbor.errors import (
    ConfigurationInvalid,
    Invalid,
    NotFound,
    PipelineInvalid,
    TransitionIllegal,
)
from arbor.ids import read_id
from arbor.memory.content import check_json, check_line
from arbor.models.handles import Handle
from arbor.workflows.definition import WorkflowDefinition, read_definition, read_new_definition
from arbor.workflows.schedules import next_time
from arbor.workflows.values import NAME_LENGTH, OPEN_RUNS

DESCRIPTION_LENGTH = 500
#: The most characters of the five fields of a schedule.
CRON_LENGTH = 100
#: The most characters of a run's input as JSON.
INPUT_LENGTH = 64_000
#: The most workflows of one tenant.
MAX_WORKFLOWS = 500

_NAME = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{NAME_LENGTH - 1}}}")


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowSchedule:
    """The times of scheduled runs, and their input; a part that is None stays, or is the default of a new workflow."""

    #: Five fields of cron; empty: never.
    cron: str | None = None
    zone: str | None = None
    input: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowRequest:
    """A new workflow, or the changes of an existing one; a field that is None changes nothing."""

    name: str
    #: The graph in DOT.
    source: str | None = None
    description: str | None = None
    #: The name or id of the agent of steps that name none; empty: none.
    agent: str | None = None
    schedule: WorkflowSchedule | None = None
    enabled: bool | None = None


@transaction.atomic
def create_workflow(*, request: WorkflowRequest, actor: str) -> Workflow:
    """Create a workflow with its first version.

    Raises Invalid, PipelineInvalid, NotFound for its agent, AlreadyExists, LimitReached.
    """
    name = request.name.strip()
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"a workflow's name has 1 to {NAME_LENGTH} lower-case letters, digits, - and _, beginning with a letter or"
            f" digit; got {request.name!r}"
        )
    if request.source is None:
        raise Invalid(f"the workflow {name} needs a definition: a graph in DOT")
    check_row_limit(
        Workflow.objects.all(),
        most=MAX_WORKFLOWS,
        refusal=f"a tenant has at most {MAX_WORKFLOWS} workflows; delete one first",
    )
    workflow = Workflow(tenant_id=current_tenant(), name=name, version=0, created_by=actor)
    _apply(workflow, request)
    insert_named_row(workflow, name, noun="workflow", constraint="workflows_name_once")
    _add_version(workflow, request.source, actor=actor)
    _audit(workflow, actor, f"created the workflow {name}", change_of({}, _shown(workflow)))
    return workflow


@transaction.atomic
def change_workflow(*, workflow_id: UUID, request: WorkflowRequest, actor: str) -> Workflow:
    """Change a workflow; another definition is a new version, which new runs use.

    Raises NotFound, also for its agent, Invalid, and PipelineInvalid.
    """
    workflow = lock_workflow(workflow_id)
    if request.name not in ("", workflow.name):
        raise Invalid(f"the workflow {workflow.name} keeps its name, because capabilities name it")
    before = _shown(workflow)
    _apply(workflow, request)
    workflow.save(force_update=True)
    changed = request.source is not None and _add_version(workflow, request.source, actor=actor)
    what = f"to version {workflow.version}" if changed else "without a new version"
    _audit(
        workflow,
        actor,
        f"changed the workflow {workflow.name} {what}",
        change_of(before, _shown(workflow)),
    )
    return workflow


@transaction.atomic
def delete_workflow(*, workflow_id: UUID, actor: str) -> Workflow:
    """Delete a workflow with its versions and ended runs, and return it. Raises NotFound, TransitionIllegal while a run is open."""
    workflow = lock_workflow(workflow_id)
    if WorkflowRun.objects.filter(workflow_id=workflow_id, status__in=OPEN_RUNS).exists():
        raise TransitionIllegal(f"the workflow {workflow.name} has open runs; cancel them first")
    _audit(workflow, actor, f"deleted the workflow {workflow.name}", change_of(_shown(workflow), {}))
    Workflow.objects.filter(id=workflow_id).delete()
    return workflow


def find_workflow(ref: str | UUID) -> Workflow:
    """Return a workflow by its name or id. Raises NotFound with the names that exist."""
    rows = Workflow.objects.select_related("agent")
    wanted = read_id(str(ref))
    workflow: Workflow | None = rows.filter(id=wanted).first() if wanted is not None else None
    # A name may have the form of an id, even of another workflow's.
    workflow = workflow or rows.filter(name=str(ref).strip()).first()
    if workflow is None:
        known = list_names(Workflow.objects.values_list("name", flat=True), none="none yet")
        raise NotFound(f"there is no workflow {str(ref)!r}; there is: {known}")
    return workflow


def lock_workflow(workflow_id: UUID) -> Workflow:
    """Lock a workflow until the transaction ends. Raises NotFound."""
    workflow: Workflow | None = Workflow.objects.select_for_update().filter(id=workflow_id).first()
    if workflow is None:
        raise NotFound(f"there is no workflow {workflow_id} in this tenant")
    return workflow


def version_of(workflow: Workflow, number: int | None = None) -> WorkflowVersion:
    """Return a version of a workflow, by default the latest. Raises NotFound."""
    wanted = workflow.version if number is None else number
    version: WorkflowVersion | None = WorkflowVersion.objects.filter(
        workflow_id=workflow.id, number=wanted
    ).first()
    if version is None:
        raise NotFound(
            f"the workflow {workflow.name} has no version {wanted}; it has 1 to {workflow.version}"
        )
    return version


def check_step_models(definition: WorkflowDefinition) -> None:
    """Check the models that steps name. Raises PipelineInvalid with every fault.

    Stored definitions are read without this check, so that their runs fail by the step.
    """
    faults: list[str] = []
    for name, step in definition.steps.items():
        if step.model:
            try:
                Handle.parse(step.model)
            except ConfigurationInvalid as error:
                faults.append(f"step {name}: {error}")
    if faults:
        raise PipelineInvalid(faults=faults)


def check_input(definition: WorkflowDefinition, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of a run as a dictionary. Raises Invalid for a missing name, no JSON, and an input that is too large."""
    missing = [name for name in definition.inputs if name not in given]
    if missing:
        raise Invalid(f"the input needs {', '.join(missing)}; it has {', '.join(given) or 'nothing'}")
    return _storable_input(given)


def _storable_input(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input as a dictionary. Raises Invalid for no JSON, and an input that is too large or cannot be stored."""
    text = check_json("the input", given)
    if len(text) > INPUT_LENGTH:
        raise Invalid(f"the input has at most {INPUT_LENGTH:,} characters as JSON, got {len(text):,}")
    return dict(given)


def _apply(workflow: Workflow, request: WorkflowRequest) -> None:
    """Check the changes and write them into the row; the next run is planned anew if the schedule changes, or if none is planned."""
    times_before = _times(workflow)
    if request.description is not None:
        workflow.description = _valid_description(request.description)
    if request.agent is not None:
        workflow.agent = find_agent(request.agent) if request.agent.strip() else None
    if request.enabled is not None:
        workflow.enabled = request.enabled
    if request.source is not None:
        # A form sends a stored definition back unchanged, also one that a new rule refuses.
        is_new = not workflow.version or request.source != version_of(workflow).source
        definition = (read_new_definition if is_new else read_definition)(request.source)
        for name in definition.agents:
            find_agent(name)
        check_step_models(definition)
    if request.schedule is not None:
        _apply_schedule(workflow, request.schedule)
    if workflow.cron:
        source = request.source if request.source is not None else version_of(workflow).source
        check_input(read_definition(source), workflow.scheduled_input)
    if workflow.next_run_at is None or _times(workflow) != times_before:
        plan_next_run(workflow, after=datetime.now(UTC))


def _apply_schedule(workflow: Workflow, schedule: WorkflowSchedule) -> None:
    if schedule.cron is not None:
        workflow.cron = _valid_cron(schedule.cron)
    if schedule.zone is not None:
        workflow.zone = find_time_zone(schedule.zone or "UTC").key
    if schedule.input is not None:
        workflow.scheduled_input = _storable_input(schedule.input)


def _times(workflow: Workflow) -> tuple[object, ...]:
    return workflow.cron, workflow.zone, workflow.enabled


def plan_next_run(workflow: Workflow, *, after: datetime) -> None:
    """Set the time of the next scheduled run; none without a schedule, or where no runs may start.

    Raises Invalid for the times, also of a disabled workflow.
    """
    following = next_time(workflow.cron, workflow.zone, after) if workflow.cron else None
    workflow.next_run_at = following if workflow.enabled else None


def _valid_cron(text: str) -> str:
    """Return the fields of a schedule with single blanks; `plan_next_run` checks what they mean."""
    fields = " ".join(text.split())
    if len(fields) > CRON_LENGTH:
        raise Invalid(f"a schedule has at most {CRON_LENGTH} characters, got {len(fields)}")
    return fields


def _valid_description(text: str) -> str:
    stripped = text.strip()
    check_line("a description", stripped, DESCRIPTION_LENGTH)
    return stripped


def _add_version(workflow: Workflow, source: str, *, actor: str) -> bool:
    """Add a version if the definition differs from the latest one; return whether it does."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    latest = WorkflowVersion.objects.filter(workflow_id=workflow.id, number=workflow.version).first()
    if latest is not None and latest.content_hash == digest:
        return False
    workflow.version += 1
    workflow.save(update_fields=["version"])
    WorkflowVersion.objects.create(
        tenant_id=workflow.tenant_id,
        workflow=workflow,
        number=workflow.version,
        source=source,
        content_hash=digest,
        created_by=actor,
    )
    return True


def _shown(workflow: Workflow) -> dict[str, Any]:
    """Return the fields of a workflow as the audit log shows them."""
    return {
        "name": workflow.name,
        "version": workflow.version,
        "description": workflow.description,
        "agent": workflow.agent_id,
        "enabled": workflow.enabled,
        "cron": workflow.cron,
        "zone": workflow.zone,
        "input": workflow.scheduled_input,
    }


def _audit(workflow: Workflow, actor: str, message: str, change: AuditChange) -> None:
    record(
        action=AuditAction.WORKFLOW_CHANGED,
        actor=actor,
        agent_id=workflow.agent_id,
        message=message,
        detail={"workflow_id": str(workflow.id), "version": workflow.version},
        change=change,
    )
