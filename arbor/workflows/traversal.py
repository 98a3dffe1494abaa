"""The steps of a run as handlers of the pipeline engine: pure functions from a state and an answer to the next state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from arbor.clock import Clock
from arbor.models.json_text import parse_storable
from arbor.pipeline.engine import (
    Checkpoint,
    Handler,
    NodeOutcome,
    NodeResult,
    Progress,
    Suspension,
    advance,
    begin,
    run_alone,
)
from arbor.workflows.definition import Placeholder, StepSpec, WorkflowDefinition, substitute
from arbor.workflows.durations import format_duration
from arbor.workflows.values import OUTPUT_LENGTH, WorkflowStepKind, WorkflowStepStatus

#: The most characters of a question, a task or a note with its values.
INPUT_LENGTH = 32_000
_STEP_FIELDS = frozenset({"output", "data", "error", "decision", "status"})


@dataclass(frozen=True, kw_only=True, slots=True)
class StepState:
    """One step of a run: a visit of a node. Conditions read it as `context.steps.NAME.output`, `.status`, `.data.KEY`, `.decision`."""

    name: str
    kind: WorkflowStepKind
    status: WorkflowStepStatus
    attempts: int = 0
    #: The text with its values.
    input: str = ""
    output: str = ""
    data: Any = None
    error: str = ""
    decision: str = ""
    decided_by: str = ""
    #: Characters that were cut from the input and from the output.
    cut: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowState:
    """The state of a run: its input and the visits of its steps, in order."""

    input: Mapping[str, Any]
    visits: tuple[StepState, ...] = ()

    @property
    def steps(self) -> Mapping[str, StepState]:
        """Return the latest visit of each step by name."""
        return {visit.name: visit for visit in self.visits}

    @property
    def current(self) -> StepState:
        """Return the latest visit."""
        return self.visits[-1]

    def with_visit(self, visit: StepState) -> WorkflowState:
        """Return the state with a further visit."""
        return replace(self, visits=(*self.visits, visit))

    def with_current(self, visit: StepState) -> WorkflowState:
        """Return the state with the latest visit replaced."""
        return replace(self, visits=(*self.visits[:-1], visit))


@dataclass(frozen=True, kw_only=True, slots=True)
class StepAnswer:
    """The answer to a step: an output, or an error; a final error is not tried again."""

    output: str = ""
    error: str = ""
    final: bool = False
    decision: str = ""
    decided_by: str = ""


class RetryDue:
    """The delay before the next try has passed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepWait:
    """The payload of a suspension: the step, and the longest time that it waits. `is_retry`: it waits for the next try."""

    spec: StepSpec
    waits: timedelta | None
    is_retry: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _StepHandler:
    """The handler of one step."""

    spec: StepSpec

    def __call__(self, state: WorkflowState) -> NodeResult[WorkflowState]:
        """Begin the step: a note is complete at once, all others wait."""
        filled = fill(self.spec.text, state)
        text = filled[:INPUT_LENGTH]
        visit = StepState(
            name=self.spec.name,
            kind=self.spec.kind,
            status=WorkflowStepStatus.WAITING,
            attempts=1,
            input=text,
            cut=len(filled) - len(text),
        )
        if self.spec.kind is WorkflowStepKind.NOTE:
            done = replace(visit, status=WorkflowStepStatus.SUCCEEDED, input="", output=text)
            return NodeResult(state=state.with_visit(done))
        return self._waiting(state.with_visit(visit), self.spec.waits)

    def resume(self, state: WorkflowState, result: StepAnswer | RetryDue) -> NodeResult[WorkflowState]:
        """Continue with the answer, or with the next try."""
        visit = state.current
        if isinstance(result, RetryDue):
            tried = replace(visit, status=WorkflowStepStatus.WAITING, attempts=visit.attempts + 1)
            return self._waiting(state.with_current(tried), self.spec.waits)
        answered = _answered(visit, result, is_json=self.spec.is_json)
        if answered.status is WorkflowStepStatus.SUCCEEDED:
            return NodeResult(state=state.with_current(answered), preferred=answered.decision)
        if result.final or visit.attempts > self.spec.retries:
            return NodeResult(
                state=state.with_current(answered), outcome=NodeOutcome.FAILURE, preferred=answered.decision
            )
        retried = replace(answered, status=WorkflowStepStatus.RETRYING)
        delay = self.spec.delay_before(visit.attempts + 1)
        return self._waiting(state.with_current(retried), delay, is_retry=True)

    def _waiting(
        self, state: WorkflowState, waits: timedelta | None, *, is_retry: bool = False
    ) -> NodeResult[WorkflowState]:
        payload = StepWait(spec=self.spec, waits=waits, is_retry=is_retry)
        return NodeResult(state=state, suspend=Suspension(kind=self.spec.kind.value, payload=payload))


def begin_traversal(
    definition: WorkflowDefinition, state: WorkflowState, *, clock: Clock
) -> Progress[WorkflowState]:
    """Walk a new run to its first suspension or its end."""
    run = advance(definition.graph, begin(definition.graph, state), _handlers(definition), clock=clock)
    return run_alone(run)


def resume_traversal(
    definition: WorkflowDefinition,
    position: Mapping[str, Any],
    state: WorkflowState,
    answer: StepAnswer | RetryDue,
    *,
    clock: Clock,
) -> Progress[WorkflowState]:
    """Walk a suspended run with the answer to its step. Raises CheckpointInvalid."""
    checkpoint = Checkpoint.at(position, state)
    run = advance(definition.graph, checkpoint, _handlers(definition), clock=clock, resume_with=answer)
    return run_alone(run)


def answer_after_timeout(spec: StepSpec, status: WorkflowStepStatus) -> StepAnswer | RetryDue:
    """Return the answer that a step continues with when its time has passed."""
    if status is WorkflowStepStatus.RETRYING:
        return RetryDue()
    waited = format_duration(spec.waits) if spec.waits else ""
    if spec.kind is WorkflowStepKind.WAIT:
        return StepAnswer(output=f"waited {waited}")
    return StepAnswer(error=f"no answer within {waited}")


def fill(text: str, state: WorkflowState) -> str:
    """Return the text with the values that it names; a missing value is empty."""
    return substitute(text, lambda named: value_of(named, state))


def value_of(named: Placeholder, state: WorkflowState) -> str:
    """Return a value of the input or of an earlier step as text; empty for a missing value."""
    value: Any
    path = named.path
    if named.root == "input":
        value = state.input.get(named.name)
    elif (visit := state.steps.get(named.name)) is None:
        return ""
    elif path and path[0] in _STEP_FIELDS:
        value, path = getattr(visit, path[0]), path[1:]
    else:
        value = visit.data if path else visit.output
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return _as_text(value)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _answered(visit: StepState, answer: StepAnswer, *, is_json: bool) -> StepState:
    """Return the visit with its answer: succeeded, or failed with the error."""
    output = answer.output[:OUTPUT_LENGTH]
    data: Any = None
    error = answer.error
    if not error and is_json:
        try:
            data = parse_storable(_without_fence(answer.output))
        except ValueError as fault:
            error = f"the output must be JSON: {fault}"
    return replace(
        visit,
        status=WorkflowStepStatus.FAILED if error else WorkflowStepStatus.SUCCEEDED,
        output=output,
        data=data,
        error=error,
        decision=answer.decision,
        decided_by=answer.decided_by,
        cut=visit.cut + len(answer.output) - len(output),
    )


def _without_fence(text: str) -> str:
    """Return a JSON text without the code fence that models put around it."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```"):
        return stripped.strip("`").removeprefix("json")
    return stripped


def _handlers(definition: WorkflowDefinition) -> Mapping[str, Handler[WorkflowState]]:
    return {name: _StepHandler(spec=spec) for name, spec in definition.steps.items()}
