"""Call tools of MCP servers, each by a durable call, at most once."""

from __future__ import annotations

import json
from collections.abc import Sequence

from arbor.errors import ToolInterrupted
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.needs import EndedCall, PlacedMemories, Placing, Question
from arbor.heartbeat.results import QUOTE_LENGTH, ActionOutcome, ActionResult, action_result, result_summary
from arbor.heartbeat.situation import MemoryView, Situation
from arbor.heartbeat.state import HeartbeatState, ToolCall
from arbor.heartbeat.steps.new_memories import new_memory
from arbor.heartbeat.steps.windows import suspended
from arbor.ids import read_id
from arbor.memory.details import SemanticDetail
from arbor.memory.trust import REFERENCE_LENGTH, Source
from arbor.memory.values import MemoryType, NewMemory, Retention
from arbor.models.ports import CallPurpose
from arbor.pipeline.engine import NodeResult, Steps
from arbor.quotations import line, shorten
from arbor.tools.calls import ToolRequest, handle_of, read_answer_text
from arbor.tools.names import PREFIX, is_tool_action, server_of
from arbor.tools.ports import ToolAnswer
from arbor.values import replace

#: The trust in the answer of a tool; as in a web page, anybody may have written it.
TOOL_TRUST = 0.4
_CONFIDENCE = 0.5
_IMPORTANCE = 0.5
_ARGUMENTS_SHOWN = 200
#: Characters of an answer that are remembered, and that a note of the same heartbeat is compared with.
_REMEMBERED_LENGTH = 2_000


def begin_tool_call(decision: Decision) -> ActionResult:
    return action_result(
        decision, ActionOutcome.UNKNOWN, f"calling {_with_arguments(decision.action, decision.params)}"
    )


def pending_tool_calls(
    situation: Situation, decisions: Sequence[Decision], results: Sequence[ActionResult]
) -> list[ToolCall]:
    """Return the pending calls of tools, in the order of their actions."""
    calls = []
    tools = situation.tools
    for place, (decision, result) in enumerate(zip(decisions, results, strict=True)):
        if not is_tool_action(decision.action) or result.outcome is not ActionOutcome.UNKNOWN:
            continue
        tool = tools[decision.action].tool
        assert tool is not None
        tool_id = read_id(tool.id)
        assert tool_id is not None
        calls.append(
            ToolCall(
                place=place,
                action=decision.action,
                tool_id=tool_id,
                fingerprint=tool.fingerprint,
                arguments=decision.params,
            )
        )
    return calls


def suspend_on_tool(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    call = heartbeat.tool_calls[0]
    request = ToolRequest(tool_id=call.tool_id, fingerprint=call.fingerprint, arguments=call.arguments)
    asked = Question(model=handle_of(call.action), request=request.to_model_request().to_json())
    return suspended(heartbeat, CallPurpose.TOOL, asked)


def finish_tool_call(heartbeat: HeartbeatState, ended: EndedCall) -> Steps[HeartbeatState]:
    """End the first of the pending calls with its answer, or with the reason why there is none."""
    call = heartbeat.tool_calls[0]
    named = _with_arguments(call.action, call.arguments)
    if not ended.complete:
        is_unknown = ended.error_kind == ToolInterrupted.__name__
        summary = f"{named} {'may have run' if is_unknown else 'did not work'}: {ended.error}"
        outcome = ActionOutcome.UNKNOWN if is_unknown else ActionOutcome.FAILURE
        return _end(heartbeat, outcome, summary, brought=summary)
    answered = read_answer_text(ended.text)
    text = answered.text.strip()
    if answered.is_error:
        summary = f"{named} reports an error: {shorten(text, QUOTE_LENGTH) or 'without a reason'}"
        return _end(heartbeat, ActionOutcome.FAILURE, summary, brought=text or summary)
    if not text:
        return _end(heartbeat, ActionOutcome.SUCCESS, f"called {named}, which answered nothing")
    memory = _memory(heartbeat, call, answered)
    # Maintenance embeds the text, which is known only now; until then recall finds it by its words.
    placed: PlacedMemories = yield Placing(memories=[memory], vectors=None, model=heartbeat.embedding_model)
    # A note that repeats the answer is trusted no further than the answer.
    shown = MemoryView(
        id=str(placed.ids[0]),
        type=memory.type,
        content=memory.content,
        role=memory.role,
        at=memory.occurred_at,
        importance=_IMPORTANCE,
        trust=memory.trust,
    )
    heartbeat = replace(heartbeat, recalled=[*heartbeat.recalled, shown])
    return _end(
        heartbeat,
        ActionOutcome.SUCCESS,
        f"called {named}, which answered: {shorten(text, QUOTE_LENGTH)}",
        brought=text,
        memory_ids=[str(memory_id) for memory_id in placed.ids],
    )


def _end(
    heartbeat: HeartbeatState,
    outcome: ActionOutcome,
    summary: str,
    *,
    brought: str = "",
    memory_ids: Sequence[str] = (),
) -> NodeResult[HeartbeatState]:
    """Store the result of the first of the pending calls, and remove the call."""
    place = heartbeat.tool_calls[0].place
    record = heartbeat.action_records[place]
    changes = {
        "outcome": outcome,
        "summary": result_summary(record.decision, summary),
        "brought": brought,
        "memory_ids": [*memory_ids],
    }
    result = record.result.model_copy(update=changes)
    heartbeat = replace(heartbeat.with_result(place, result), tool_calls=heartbeat.tool_calls[1:])
    return NodeResult(state=heartbeat, changed=(f"{result.action}: {result.summary}",))


def _with_arguments(action: str, arguments: object) -> str:
    written = json.dumps(arguments, ensure_ascii=False, default=str)
    return f"{action} {shorten(written, _ARGUMENTS_SHOWN)}" if arguments else action


def _memory(heartbeat: HeartbeatState, call: ToolCall, answered: ToolAnswer) -> NewMemory:
    source = Source(
        kind="tool", reference=call.action[:REFERENCE_LENGTH], trust=TOOL_TRUST, observed_at=heartbeat.now
    )
    detail = SemanticDetail(
        confidence=_CONFIDENCE,
        sources=(source,),
        extra={"arguments": shorten(json.dumps(call.arguments, ensure_ascii=False), _ARGUMENTS_SHOWN)},
    )
    text = line(answered.text, _REMEMBERED_LENGTH)
    return new_memory(
        heartbeat,
        f"{_with_arguments(call.action, call.arguments)} answered: {text}",
        MemoryType.SEMANTIC,
        importance=_IMPORTANCE,
        # The server speaks here, not the agent.
        role=f"{PREFIX}{server_of(call.action)}",
        trust=TOOL_TRUST,
        # Not appraised: the words of a server must not ask for permanence.
        retention=Retention.TASK,
        detail=detail.to_json(),
    )
