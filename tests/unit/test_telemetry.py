"""Spans of heartbeats."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from arbor.telemetry import (
    CallTiming,
    ExecutedAction,
    HeartbeatRecord,
    RecordedStep,
    heartbeat_spans,
)

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ID = UUID("01900000-0000-7000-8000-000000000001")


def after(ms: float) -> datetime:
    return START + timedelta(milliseconds=ms)


def a_heartbeat(**changes: object) -> HeartbeatRecord:
    values: dict[str, object] = {
        "id": ID,
        "tenant": "acme",
        "agent_id": UUID(int=7),
        "agent_name": "Ada",
        "status": "done",
        "mode": "reflection",
        "trigger": "timer",
        "model": "openai/gpt-x",
        "started_at": START,
        "ended_at": after(900),
        "steps": [
            RecordedStep(
                sequence=1,
                node="build_prompt",
                handler="build_prompt",
                outcome="success",
                started_at=START,
                duration_ms=4.5,
            ),
            RecordedStep(
                sequence=2,
                node="act",
                handler="act",
                outcome="success",
                started_at=after(800),
                duration_ms=20.0,
            ),
        ],
        "calls": [
            CallTiming(
                id=UUID(int=9),
                purpose="think",
                provider="openai",
                model="gpt-x",
                started_at=after(5),
                ended_at=after(790),
                input_tokens=1200,
                cached_tokens=1000,
                output_tokens=90,
            )
        ],
        "actions": [
            ExecutedAction(name="recall", verdict="allowed", cost=1.0),
            ExecutedAction(name="reach_out", verdict="refused", cost=0.0, failed=True),
        ],
    }
    return HeartbeatRecord(**(values | changes))  # type: ignore[arg-type]


def test_the_heartbeat_is_the_root_of_its_trace() -> None:
    root, *children = heartbeat_spans(a_heartbeat())

    assert (root.trace_id, root.parent_id, root.name) == (ID.int, None, "invoke_agent Ada")
    assert {span.trace_id for span in children} == {ID.int}
    assert {span.parent_id for span in children} == {root.span_id}
    assert root.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert root.attributes["arbor.tenant"] == "acme"
    assert (root.started_at, root.ended_at) == (START, after(900))


def test_nodes_calls_and_actions_have_spans() -> None:
    spans = {span.name: span for span in heartbeat_spans(a_heartbeat())}

    assert list(spans) == [
        "invoke_agent Ada",
        "node build_prompt",
        "node act",
        "chat gpt-x",
        "execute_tool recall",
        "execute_tool reach_out",
    ]
    call = spans["chat gpt-x"]
    assert call.client
    assert call.attributes["gen_ai.usage.input_tokens"] == 1200
    assert call.attributes["gen_ai.usage.cache_read.input_tokens"] == 1000
    assert call.attributes["gen_ai.provider.name"] == "openai"
    assert spans["node build_prompt"].ended_at == after(4.5)


def test_actions_have_the_time_of_the_acting_node() -> None:
    spans = {span.name: span for span in heartbeat_spans(a_heartbeat())}

    assert spans["execute_tool recall"].started_at == after(800)
    assert spans["execute_tool recall"].ended_at == after(820)
    assert (spans["execute_tool recall"].error, spans["execute_tool reach_out"].error) == ("", "failed")


def test_a_failed_heartbeat_is_an_error() -> None:
    assert heartbeat_spans(a_heartbeat(status="failed"))[0].error == "failed"


def test_the_same_heartbeat_has_the_same_span_ids() -> None:
    first, second = heartbeat_spans(a_heartbeat()), heartbeat_spans(a_heartbeat())

    ids = [span.span_id for span in first]
    assert ids == [span.span_id for span in second]
    assert len(set(ids)) == len(ids)
    assert all(0 < span_id < 2**64 for span_id in ids)


def test_a_skipped_heartbeat_has_one_span() -> None:
    skipped = a_heartbeat(status="skipped", mode="", model="", steps=(), calls=(), actions=())

    (span,) = heartbeat_spans(skipped)
    assert "gen_ai.request.model" not in span.attributes
    assert span.error == ""
