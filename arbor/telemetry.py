"""Spans of heartbeats, by OpenTelemetry's conventions for generative AI.

The conventions are still in development, so all their names are in this module. Spans are built from what a heartbeat stored:
the hot path pays nothing, and a heartbeat is one trace even if several workers ran it. Texts of prompts, replies and
memories are never part of a span.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol
from uuid import UUID

type AttributeValue = str | int | float | bool

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT_ID = "gen_ai.agent.id"
AGENT_NAME = "gen_ai.agent.name"
REQUEST_MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOOL_NAME = "gen_ai.tool.name"
ERROR_TYPE = "error.type"
#: Attributes of Arbor's own.
TENANT = "arbor.tenant"
HEARTBEAT = "arbor.heartbeat.id"
STATUS = "arbor.heartbeat.status"
MODE = "arbor.heartbeat.mode"
TRIGGER = "arbor.heartbeat.trigger"
NODE = "arbor.node"
OUTCOME = "arbor.outcome"
PURPOSE = "arbor.call.purpose"
VERDICT = "arbor.action.verdict"
COST = "arbor.action.energy"

#: The provider of heartbeats, which are invocations inside Arbor.
_ARBOR = "arbor"
#: The step whose times the spans of actions have, because actions have no times of their own.
_ACTING = "act"
_FAILED = "failed"


class Operation(StrEnum):
    """The operations of the conventions that heartbeats have."""

    INVOKE_AGENT = "invoke_agent"
    CHAT = "chat"
    EXECUTE_TOOL = "execute_tool"


@dataclass(frozen=True, kw_only=True)
class RecordedStep:
    """One run of a pipeline node. A node that waits for a call has two."""

    #: Counts from 1.
    sequence: int
    node: str
    handler: str
    #: An `arbor.pipeline.conditions.NodeOutcome`, or `waiting`.
    outcome: str
    #: The changes of the step, one line each.
    changed: Sequence[str] = ()
    started_at: datetime
    duration_ms: float


@dataclass(frozen=True, kw_only=True)
class CallTiming:
    """One model call of a heartbeat, with its usage."""

    id: UUID
    purpose: str
    #: As in the ledger: the provider, and its name of the model.
    provider: str
    model: str
    started_at: datetime
    ended_at: datetime
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    error_kind: str = ""


@dataclass(frozen=True, kw_only=True)
class ExecutedAction:
    """One action of a heartbeat: its verdict, and the energy charged."""

    name: str
    verdict: str
    cost: float
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class HeartbeatRecord:
    """The stored values of a heartbeat that its spans need."""

    id: UUID
    tenant: str
    agent_id: UUID
    agent_name: str
    status: str
    mode: str
    trigger: str
    model: str
    started_at: datetime
    ended_at: datetime
    steps: Sequence[RecordedStep] = ()
    calls: Sequence[CallTiming] = ()
    actions: Sequence[ExecutedAction] = ()


@dataclass(frozen=True, kw_only=True)
class Span:
    """A finished span. Ids are as in OpenTelemetry: 16 and 8 bytes; times are aware."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    started_at: datetime
    ended_at: datetime
    #: Whether another system answers, such as a model's server.
    client: bool = False
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    #: The kind of the error, empty without one.
    error: str = ""


class SpanExporter(Protocol):
    """Sends spans to a collector."""

    def export(self, spans: Sequence[Span]) -> None:
        """Send spans. Raises DeliveryFailed when the collector does not accept them; `final` where it answered with a refusal."""
        ...


def heartbeat_spans(heartbeat: HeartbeatRecord) -> list[Span]:
    """Return the spans of an ended heartbeat: its own span first, then the spans of nodes, model calls and actions.

    The trace's id is the heartbeat's, and spans' ids follow from it, so that spans sent twice are the same spans.
    """
    trace_id = heartbeat.id.int
    root = _span_id(heartbeat.id, "heartbeat")
    spans = [_root(heartbeat, trace_id, root)]
    for step in heartbeat.steps:
        spans.append(_step(heartbeat, step, trace_id, root))
    for call in heartbeat.calls:
        spans.append(_call(call, trace_id, root))
    acting = [step for step in heartbeat.steps if step.handler == _ACTING]
    for number, action in enumerate(heartbeat.actions):
        spans.append(_action(heartbeat, number, action, acting, root))
    return spans


def _root(heartbeat: HeartbeatRecord, trace_id: int, span_id: int) -> Span:
    attributes: dict[str, AttributeValue] = {
        OPERATION: Operation.INVOKE_AGENT,
        PROVIDER: _ARBOR,
        AGENT_ID: str(heartbeat.agent_id),
        AGENT_NAME: heartbeat.agent_name,
        TENANT: heartbeat.tenant,
        HEARTBEAT: str(heartbeat.id),
        STATUS: heartbeat.status,
        TRIGGER: heartbeat.trigger,
    }
    if heartbeat.mode:
        attributes[MODE] = heartbeat.mode
    if heartbeat.model:
        attributes[REQUEST_MODEL] = heartbeat.model
    return Span(
        name=f"{Operation.INVOKE_AGENT} {heartbeat.agent_name}",
        trace_id=trace_id,
        span_id=span_id,
        parent_id=None,
        started_at=heartbeat.started_at,
        ended_at=heartbeat.ended_at,
        attributes=attributes,
        error=_FAILED if heartbeat.status == _FAILED else "",
    )


def _step(heartbeat: HeartbeatRecord, step: RecordedStep, trace_id: int, root: int) -> Span:
    return Span(
        name=f"node {step.node}",
        trace_id=trace_id,
        span_id=_span_id(heartbeat.id, f"step {step.sequence}"),
        parent_id=root,
        started_at=step.started_at,
        ended_at=step.started_at + timedelta(milliseconds=step.duration_ms),
        attributes={NODE: step.node, OUTCOME: step.outcome},
    )


def _call(call: CallTiming, trace_id: int, root: int) -> Span:
    attributes: dict[str, AttributeValue] = {
        OPERATION: Operation.CHAT,
        PROVIDER: call.provider,
        REQUEST_MODEL: call.model,
        PURPOSE: call.purpose,
        INPUT_TOKENS: call.input_tokens,
        CACHED_TOKENS: call.cached_tokens,
        OUTPUT_TOKENS: call.output_tokens,
    }
    return Span(
        name=f"{Operation.CHAT} {call.model}",
        trace_id=trace_id,
        span_id=_span_id(call.id, "call"),
        parent_id=root,
        started_at=call.started_at,
        ended_at=call.ended_at,
        client=True,
        attributes=attributes,
        error=call.error_kind,
    )


def _action(
    heartbeat: HeartbeatRecord, number: int, action: ExecutedAction, acting: Sequence[RecordedStep], root: int
) -> Span:
    """Return the span of an action, with the times of the steps that ran the actions."""
    started_at = acting[0].started_at if acting else heartbeat.started_at
    ended_at = (
        acting[-1].started_at + timedelta(milliseconds=acting[-1].duration_ms) if acting else started_at
    )
    return Span(
        name=f"{Operation.EXECUTE_TOOL} {action.name}",
        trace_id=heartbeat.id.int,
        span_id=_span_id(heartbeat.id, f"action {number}"),
        parent_id=root,
        started_at=started_at,
        ended_at=ended_at,
        attributes={
            OPERATION: Operation.EXECUTE_TOOL,
            TOOL_NAME: action.name,
            VERDICT: action.verdict,
            COST: action.cost,
        },
        error=_FAILED if action.failed else "",
    )


def _span_id(of: UUID, label: str) -> int:
    """Return the id of a span: 8 bytes that are never all zero, the same each time."""
    digest = hashlib.sha256(of.bytes + label.encode()).digest()
    return int.from_bytes(digest[:8]) or 1
