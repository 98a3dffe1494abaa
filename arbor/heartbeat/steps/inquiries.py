"""Execute inquiries, each a chain of durable calls to the web and to models."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from arbor.errors import ReplyInvalid
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.needs import CallReply, EndedCall, PlacedMemories, Placing, Question
from arbor.heartbeat.own_past import NOT_OWN_HEARTBEATS
from arbor.heartbeat.results import QUOTE_LENGTH, ActionOutcome, ActionResult, action_result, result_summary
from arbor.heartbeat.sources import OWN_CONCLUSION_TRUST
from arbor.heartbeat.state import HeartbeatState, Inquiry
from arbor.heartbeat.steps.new_memories import new_memory
from arbor.heartbeat.steps.round_trips import UNREACHABLE_ERRORS, with_next_model
from arbor.heartbeat.steps.tool_calls import finish_tool_call, suspend_on_tool
from arbor.heartbeat.steps.windows import limits_of, suspended
from arbor.memory.details import SemanticDetail
from arbor.memory.trust import REFERENCE_LENGTH, Source, semantic_trust
from arbor.memory.values import MemoryType, NewMemory, Recalled
from arbor.models.handles import is_reflex
from arbor.models.ports import CallPurpose, ModelRequest
from arbor.pipeline.engine import NodeResult, Steps
from arbor.quotations import counted, quoted, shorten
from arbor.values import replace
from arbor.web.answers import InquiryAnswer, answer_request, appraise_request, read_answer, read_appraisal
from arbor.web.lookup import Findings
from arbor.web.plan import WEB_HANDLE, Depth, web_request
from arbor.web.ports import Page

#: The depth of each inquiry.
DEPTHS: Mapping[str, Depth] = {"inquire_shallow": Depth.SHALLOW, "inquire_deep": Depth.DEEP}
#: The trust in a web page, and the most trust in several: pages copy each other.
WEB_TRUST = 0.4
MAX_WEB_TRUST = OWN_CONCLUSION_TRUST - 0.1
#: The importance of an answer by depth: at least that of a note.
_IMPORTANCE = {Depth.SHALLOW: 0.6, Depth.DEEP: 0.7}
#: Memories that a deep inquiry recalls (seed 004, 3.2.4).
_RECALLED = 5
_FAILURES_LENGTH = 600
#: The steps that call a model.
_MODEL_STEPS = frozenset({CallPurpose.ANSWER.value, CallPurpose.APPRAISE.value})


def inquire(decision: Decision) -> ActionResult:
    return action_result(decision, ActionOutcome.UNKNOWN, f"looking up {quoted(decision.params['question'])}")


def pending_work(decisions: Sequence[Decision], results: Sequence[ActionResult]) -> list[Inquiry]:
    """Return the pending inquiries, in the order of their actions."""
    return [
        Inquiry(
            place=place,
            question=decision.params["question"],
            queries=list(decision.params["queries"]),
            depth=DEPTHS[decision.action].value,
        )
        for place, (decision, result) in enumerate(zip(decisions, results, strict=True))
        if decision.action in DEPTHS and decision.runs and result.outcome is ActionOutcome.UNKNOWN
    ]


class PendingWork:
    """Continues the inquiries, then the calls of tools; runs again while `work_left` is above 0.

    An inquiry calls the web, then a model for the answer, then, if deep, a model for the appraisal. An unavailable model is
    replaced by the next one of the tier. Any other failed call fails the action, whose energy is spent, except that of the
    appraisal: the answer counts without it, with half its confidence.
    """

    def __call__(self, heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
        """Begin the first of the remaining inquiries with a call to the web, or suspend on a call of a tool."""
        if not heartbeat.work:
            return suspend_on_tool(heartbeat) if heartbeat.tool_calls else NodeResult(state=heartbeat)
        inquiry = heartbeat.work[0]
        request = web_request(question=inquiry.question, queries=inquiry.queries, depth=Depth(inquiry.depth))
        asked = Question(model=WEB_HANDLE, request=request.to_json())
        return _suspend(heartbeat, replace(inquiry, step=CallPurpose.WEB.value), asked)

    def resume(self, heartbeat: HeartbeatState, result: EndedCall) -> Steps[HeartbeatState]:
        if not heartbeat.work:
            return (yield from finish_tool_call(heartbeat, result))
        inquiry = heartbeat.work[0]
        if not result.complete:
            can_ask_next = result.error_kind in UNREACHABLE_ERRORS and bool(heartbeat.models_left)
            if inquiry.step in _MODEL_STEPS and can_ask_next:
                return (yield from _ask_next(heartbeat, inquiry))
            return (yield from _finish_without_reply(heartbeat, inquiry, result, result.error))
        try:
            return (yield from _STEPS[inquiry.step](heartbeat, inquiry, result))
        except ReplyInvalid as error:
            reason = f"the model's {inquiry.step} cannot be used: {error}"
            return (yield from _finish_without_reply(heartbeat, inquiry, result, reason))


def _after_search(heartbeat: HeartbeatState, inquiry: Inquiry, result: EndedCall) -> Steps[HeartbeatState]:
    findings = Findings.from_json(json.loads(result.text))
    remembered: list[str] = []
    if inquiry.depth == Depth.DEEP:
        recalled: list[Recalled] = yield heartbeat.recall_of(
            inquiry.question, limit=_RECALLED, only=NOT_OWN_HEARTBEATS
        )
        remembered = [memory.content for memory in recalled]
        heartbeat = heartbeat.with_recall(recalled)
    inquiry = replace(
        inquiry,
        step=CallPurpose.ANSWER.value,
        call_id=result.call_id,
        pages=[{"url": page.url, "title": page.title} for page in findings.pages],
        failures=list(findings.failures),
        remembered=remembered,
    )
    return _ask_model(heartbeat, inquiry, findings.pages)


def _after_answer(heartbeat: HeartbeatState, inquiry: Inquiry, result: EndedCall) -> Steps[HeartbeatState]:
    answer = read_answer(result.text, pages=len(inquiry.pages))
    if not answer.text or inquiry.depth == Depth.SHALLOW:
        return (yield from _finish(heartbeat, inquiry, answer))
    stored = {**asdict(answer), "sources": list(answer.sources)}
    inquiry = replace(inquiry, step=CallPurpose.APPRAISE.value, answer=stored)
    pages = yield from _pages_of(inquiry)
    return _ask_model(heartbeat, inquiry, pages)


def _after_appraisal(heartbeat: HeartbeatState, inquiry: Inquiry, result: EndedCall) -> Steps[HeartbeatState]:
    appraisal = read_appraisal(result.text)
    appraised = _stored_answer(inquiry, confidence=appraisal.confidence)
    return (yield from _finish(heartbeat, inquiry, appraised, note=appraisal.reason))


_STEPS: Mapping[str, Callable[[HeartbeatState, Inquiry, EndedCall], Steps[HeartbeatState]]] = {
    CallPurpose.WEB.value: _after_search,
    CallPurpose.ANSWER.value: _after_answer,
    CallPurpose.APPRAISE.value: _after_appraisal,
}


def _ask_next(heartbeat: HeartbeatState, inquiry: Inquiry) -> Steps[HeartbeatState]:
    following = with_next_model(heartbeat)
    pages = yield from _pages_of(inquiry)
    asked = _ask_model(following, inquiry, pages)
    return replace(asked, changed=(f"{heartbeat.model} is out of reach; {following.model} is asked",))


def _finish_without_reply(
    heartbeat: HeartbeatState, inquiry: Inquiry, result: EndedCall, reason: str
) -> Steps[HeartbeatState]:
    """End an inquiry whose call failed or whose reply is unusable; an answer without an appraisal counts, with half its confidence."""
    if inquiry.step == CallPurpose.APPRAISE:
        assert inquiry.answer is not None
        half = _stored_answer(inquiry, confidence=inquiry.answer["confidence"] / 2)
        why = f"nobody could judge it: {result.error or 'the reply cannot be used'}"
        return (yield from _finish(heartbeat, inquiry, half, note=why, appraised=False))
    summary = f"did not find out {quoted(inquiry.question)}: {reason}"
    return _end(heartbeat, inquiry, outcome=ActionOutcome.FAILURE, summary=summary, brought=summary)


def _finish(
    heartbeat: HeartbeatState,
    inquiry: Inquiry,
    answer: InquiryAnswer,
    *,
    note: str = "",
    appraised: bool = True,
) -> Steps[HeartbeatState]:
    """End an inquiry with its answer, which is stored if deep or worth keeping; `note` is the appraisal in words."""
    text = answer.text
    read = counted(len(inquiry.pages), "page")
    if not text:
        summary = f"read {read} on {quoted(inquiry.question)} and found no answer"
        return _end(heartbeat, inquiry, outcome=ActionOutcome.PARTIAL, summary=summary, brought=summary)
    memory_ids: list[str] = []
    if inquiry.depth == Depth.DEEP or answer.worth_keeping:
        # Maintenance embeds the text, which is known only now; until then recall finds it by its words.
        placed: PlacedMemories = yield Placing(
            memories=[_memory(heartbeat, inquiry, answer)], vectors=None, model=heartbeat.embedding_model
        )
        memory_ids = [str(memory_id) for memory_id in placed.ids]
    return _end(
        heartbeat,
        inquiry,
        outcome=ActionOutcome.SUCCESS if appraised else ActionOutcome.PARTIAL,
        summary=f"found out about {quoted(inquiry.question)} from {read}: {shorten(text, QUOTE_LENGTH)}",
        memory_ids=memory_ids,
        brought=_format_answer(inquiry, answer, note),
    )


def _end(
    heartbeat: HeartbeatState, inquiry: Inquiry, *, summary: str, **changes: Any
) -> NodeResult[HeartbeatState]:
    """Store the changed result of the inquiry's action, and remove the inquiry."""
    record = heartbeat.action_records[inquiry.place]
    changes["summary"] = result_summary(record.decision, summary)
    result = record.result.model_copy(update=changes)
    heartbeat = replace(heartbeat.with_result(inquiry.place, result), work=heartbeat.work[1:])
    return NodeResult(state=heartbeat, changed=(f"{result.action}: {result.summary}",))


def _ask_model(
    heartbeat: HeartbeatState, inquiry: Inquiry, pages: Sequence[Page]
) -> NodeResult[HeartbeatState]:
    """Ask the model for the answer or the appraisal, by the step of the inquiry."""
    nonce, for_rule = heartbeat.nonce, is_reflex(heartbeat.model)
    window = limits_of(heartbeat, [heartbeat.model]).window
    request: ModelRequest
    if inquiry.step == CallPurpose.ANSWER:
        request = answer_request(
            inquiry.question,
            pages,
            remembered=inquiry.remembered,
            nonce=nonce,
            window=window,
            for_rule=for_rule,
        )
    else:
        assert inquiry.answer is not None
        answer = _stored_answer(inquiry, confidence=inquiry.answer["confidence"])
        request = appraise_request(
            inquiry.question, answer, pages, nonce=nonce, window=window, for_rule=for_rule
        )
    return _suspend(heartbeat, inquiry, Question(model=heartbeat.model, request=request.to_json()))


def _suspend(heartbeat: HeartbeatState, inquiry: Inquiry, question: Question) -> NodeResult[HeartbeatState]:
    heartbeat = replace(heartbeat, work=[inquiry, *heartbeat.work[1:]])
    return suspended(heartbeat, CallPurpose(inquiry.step), question)


def _pages_of(inquiry: Inquiry) -> Generator[CallReply, str, tuple[Page, ...]]:
    """Return the pages from the result of the web call; checkpoints do not contain pages."""
    assert inquiry.call_id is not None
    read = yield CallReply(call_id=inquiry.call_id)
    return Findings.from_json(json.loads(read)).pages


def _stored_answer(inquiry: Inquiry, *, confidence: float) -> InquiryAnswer:
    assert inquiry.answer is not None
    written = {**inquiry.answer, "confidence": confidence, "sources": tuple(inquiry.answer["sources"])}
    return InquiryAnswer(**written)


def _cited(inquiry: Inquiry, answer: InquiryAnswer) -> list[dict[str, str]]:
    return [inquiry.pages[place] for place in answer.sources]


def _memory(heartbeat: HeartbeatState, inquiry: Inquiry, answer: InquiryAnswer) -> NewMemory:
    sources = tuple(
        Source(
            kind="url", reference=page["url"][:REFERENCE_LENGTH], trust=WEB_TRUST, observed_at=heartbeat.now
        )
        for page in _cited(inquiry, answer)
    )
    confidence, question = answer.confidence, inquiry.question
    detail = SemanticDetail(confidence=confidence, sources=sources, extra={"question": question})
    return new_memory(
        heartbeat,
        f"{question} {answer.text}",
        MemoryType.SEMANTIC,
        importance=_IMPORTANCE[Depth(inquiry.depth)],
        trust=min(semantic_trust(confidence=confidence, sources=sources), MAX_WEB_TRUST),
        detail=detail.to_json(),
    )


def _format_answer(inquiry: Inquiry, answer: InquiryAnswer, note: str) -> str:
    sure = f"{answer.confidence:.2f}{f' ({note})' if note else ''}"
    lines = [
        inquiry.question,
        answer.text,
        f"Confidence {sure}. Sources:",
        *(f"- {page['title']} {page['url']}".strip() for page in _cited(inquiry, answer)),
    ]
    if inquiry.failures:
        lines.append(f"Not read: {'; '.join(inquiry.failures)}"[:_FAILURES_LENGTH])
    return "\n".join(lines)
