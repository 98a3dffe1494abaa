"""Calls of tools: their results."""

from __future__ import annotations

from uuid import UUID

from arbor.heartbeat.needs import EndedCall
from arbor.heartbeat.results import ActionOutcome, RoundTripRecord
from arbor.heartbeat.state import ToolCall
from arbor.heartbeat.steps.tool_calls import finish_tool_call
from tests.unit.heartbeat.state_builders import Answers, action_record_of, heartbeat_of

CALL = ToolCall(
    place=0, action="mcp.notes.post", tool_id=UUID(int=1), fingerprint="f", arguments={"text": "a\nb"}
)


def test_an_ended_call_has_a_summary_of_one_line() -> None:
    started = action_record_of(CALL.action, outcome=ActionOutcome.UNKNOWN)
    heartbeat = heartbeat_of(present=RoundTripRecord(action_records=[started]), tool_calls=[CALL])
    failed = EndedCall(
        call_id=UUID(int=2), complete=False, text="", error_kind="ToolFailed", error="no answer:\n\n  refused"
    )
    (ended,) = Answers().run(finish_tool_call(heartbeat, failed)).state.whole.results
    assert ended.summary == r'mcp.notes.post {"text": "a\nb"} did not work: no answer: refused'
