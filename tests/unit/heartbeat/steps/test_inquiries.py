"""Inquiries: from the web to an answer, its appraisal and a memory, and failed calls."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.needs import CallReply, EndedCall, Placing, Question
from arbor.heartbeat.own_past import NOT_OWN_HEARTBEATS
from arbor.heartbeat.results import ActionOutcome, RoundTripRecord
from arbor.heartbeat.state import HeartbeatState, Inquiry
from arbor.heartbeat.steps.actions import act
from arbor.heartbeat.steps.inquiries import MAX_WEB_TRUST, PendingWork, pending_work
from arbor.memory.recall.recall_request import RecallRequest
from arbor.models.ports import CallPurpose, ModelRequest
from arbor.pipeline.engine import NodeResult
from arbor.values import replace
from arbor.web.plan import WEB_HANDLE
from tests.unit.heartbeat.builders import NONCE, NOW
from tests.unit.heartbeat.state_builders import (
    HEARTBEAT,
    Answers,
    action_record_of,
    decision_of,
    heartbeat_of,
    permitted,
    recalled_memory,
    refusal_of,
    result_of,
    signed,
)

MODEL = EmbeddingModel(name="wordllama", dimension=2)
QUESTION = "How deep is the reef?"
WEB, ANSWER, JUDGE = (UUID(int=number) for number in (11, 12, 13))
PAGES = [
    {"url": "https://reef.example", "title": "Reef", "text": "Eleven fathoms."},
    {"url": "https://log.example", "title": "", "text": "Eleven fathoms, too."},
]
WEB_RESULT = json.dumps({"pages": PAGES, "failures": ["https://down.example: no answer"]})
SHOWN_PAGES = [{"url": page["url"], "title": page["title"]} for page in PAGES]


def inquiry(depth: str = "shallow", **changes: Any) -> Inquiry:
    values: dict[str, Any] = {"place": 0, "question": QUESTION, "queries": ["reef depth"], "depth": depth}
    return Inquiry(**(values | changes))


def inquiry_at_answer(depth: str = "shallow", **changes: Any) -> Inquiry:
    """Return an inquiry that waits for a model's answer."""
    return inquiry(depth, step="answer", call_id=WEB, pages=SHOWN_PAGES, failures=["down"], **changes)


def inquiry_at_appraisal(**changes: Any) -> Inquiry:
    answer = {"text": "Eleven fathoms.", "confidence": 0.8, "sources": [0, 1], "worth_keeping": False}
    return inquiry("deep", step="appraise", call_id=WEB, pages=SHOWN_PAGES, answer=answer, **changes)


def heartbeat_with_inquiries(*work: Inquiry, **changes: Any) -> HeartbeatState:
    """Return a heartbeat whose actions have started these inquiries."""
    records = [
        action_record_of(
            f"inquire_{item.depth}", index=place, outcome=ActionOutcome.UNKNOWN, cost=3 if place == 0 else 6
        )
        for place, item in enumerate(work)
    ]
    values: dict[str, Any] = {
        "work": [*work],
        "embedding_model": MODEL,
        "present": RoundTripRecord(action_records=records),
    }
    return heartbeat_of(**(values | changes))


def complete_call(text: Any, call_id: UUID = ANSWER) -> EndedCall:
    written = text if isinstance(text, str) else json.dumps(text)
    return EndedCall(call_id=call_id, complete=True, text=written)


def failed_call(kind: str = "WebFailed", call_id: UUID = WEB) -> EndedCall:
    return EndedCall(call_id=call_id, complete=False, text="", error="it is away", error_kind=kind)


def resume_inquiries(
    heartbeat: HeartbeatState, result: EndedCall, answers: Answers | None = None
) -> NodeResult[HeartbeatState]:
    return (answers or Answers()).run(PendingWork().resume(heartbeat, result))


def suspension_of(result: NodeResult[HeartbeatState]) -> tuple[str, str, ModelRequest]:
    """Return the kind, model and request of a suspension."""
    assert result.suspend is not None
    question: Question = result.suspend.payload
    return result.suspend.kind, question.model, ModelRequest.from_json(question.request)


def test_an_inquiry_is_started_and_continued_by_its_step() -> None:
    decisions = [
        permitted("rest"),
        permitted("inquire_shallow", question="How deep?", queries=["reef depth"]),
        refusal_of("inquire_deep", DecisionVerdict.TOO_LITTLE_ENERGY, question="no", queries=[]),
        permitted("inquire_deep", question="How old?"),
    ]
    numbered = [decision.model_copy(update={"index": place}) for place, decision in enumerate(decisions)]
    started = signed(heartbeat_of(decisions=numbered, round_trip=1, energy_start=20.0))
    heartbeat = Answers().run(act(started)).state

    outcomes = [record.result.outcome.value for record in heartbeat.action_records]
    assert outcomes == ["success", "unknown", "blocked", "unknown"]
    assert [(item.place, item.question, item.depth) for item in heartbeat.work] == [
        (1, "How deep?", "shallow"),
        (3, "How old?", "deep"),
    ]
    assert heartbeat.work[0].queries == ["reef depth"]
    assert heartbeat.action_records[1].result.summary == "looking up “How deep?”"
    assert heartbeat.work_left == 2
    assert heartbeat.energy_end == 10.0 - sum(decision.cost for decision in decisions)


def test_an_ended_inquiry_names_its_parameters_without_an_effect() -> None:
    heartbeat = heartbeat_with_inquiries(inquiry(step="web"))
    (started,) = heartbeat.action_records
    decision = started.decision.model_copy(update={"ignored": ["mood"]})
    present = RoundTripRecord(action_records=[replace(started, decision=decision)])
    ended = resume_inquiries(replace(heartbeat, present=present), failed_call()).state
    (record,) = ended.action_records
    assert record.result.summary.endswith("it is away; without effect: mood")


def test_an_ended_inquiry_has_a_summary_of_one_line() -> None:
    heartbeat = heartbeat_with_inquiries(inquiry_at_answer(question="How deep\n\nis the reef?"))
    result = resume_inquiries(heartbeat, complete_call(REPLY | {"answer": "Eleven\nfathoms."}))
    (ended,) = result.state.whole.results
    assert ended.summary == "found out about “How deep is the reef?” from 2 pages: Eleven fathoms."


def test_only_permitted_and_started_inquiries_are_pending() -> None:
    decisions = [
        decision_of("inquire_deep", question=QUESTION, queries=["a"]),
        decision_of("rest"),
        decision_of("inquire_shallow", question="b", queries=[]),
    ]
    unknown, failure = ActionOutcome.UNKNOWN, ActionOutcome.FAILURE
    results = [
        result_of(decision.action, outcome=outcome)
        for decision, outcome in zip(decisions, (unknown, unknown, failure), strict=True)
    ]
    assert pending_work(decisions, results) == [inquiry("deep", queries=["a"])]


def test_a_step_without_inquiries_does_nothing() -> None:
    heartbeat = heartbeat_of()
    result = Answers().run(PendingWork()(heartbeat))
    assert (result.state, result.suspend) == (heartbeat, None)


def test_the_web_is_searched_first() -> None:
    result = Answers().run(PendingWork()(heartbeat_with_inquiries(inquiry("deep"))))

    kind, handle, request = suspension_of(result)
    assert (kind, handle, request.purpose) == ("web", WEB_HANDLE, CallPurpose.WEB)
    assert request.context == {"question": QUESTION, "queries": ["reef depth"], "depth": "deep"}
    assert result.state.work[0].step == "web"


@pytest.mark.parametrize("depth", ["shallow", "deep"])
def test_a_model_reads_the_pages_and_a_deep_inquiry_also_recalls(depth: str) -> None:
    answers = Answers({RecallRequest: [recalled_memory(1)]})
    heartbeat = heartbeat_with_inquiries(inquiry(depth, step="web"), vectors={QUESTION: [0.5, 0.5]})
    result = resume_inquiries(heartbeat, complete_call(WEB_RESULT, WEB), answers)

    kind, model, request = suspension_of(result)
    text = request.messages[0].content
    assert (kind, model) == ("answer", "openai/large")
    assert "Eleven fathoms." in text
    assert f"<data-{NONCE}>" in text
    assert ("memory 1" in text) is (depth == "deep")
    (now,) = result.state.work
    assert (now.step, now.call_id, now.pages) == ("answer", WEB, SHOWN_PAGES)
    assert now.failures == ["https://down.example: no answer"]
    if depth == "shallow":
        assert (answers.needs, result.state.effects.recalls) == ([], ())
        return
    (need,) = answers.needs
    assert (need.text, need.vector, need.limit, need.only) == (QUESTION, [0.5, 0.5], 5, NOT_OWN_HEARTBEATS)
    assert result.state.effects.recalls == ({recalled_memory(1).id: 1.0},)
    assert now.remembered == ["memory 1"]


REPLY = {"answer": "Eleven fathoms.", "confidence": 0.9, "sources": [1, 2], "worth_keeping": True}


def test_a_shallow_answer_is_stored_and_reported() -> None:
    answers = Answers()
    result = resume_inquiries(heartbeat_with_inquiries(inquiry_at_answer()), complete_call(REPLY), answers)

    (need,) = answers.needs
    (memory,) = need.memories
    assert (memory.content, memory.source) == (f"{QUESTION} Eleven fathoms.", f"heartbeat:{HEARTBEAT}")
    assert (memory.importance, memory.occurred_at) == (0.6, NOW)
    assert memory.trust <= MAX_WEB_TRUST
    assert [source["reference"] for source in memory.detail["sources"]] == [page["url"] for page in PAGES]
    # The text is new: maintenance embeds it.
    assert need.vectors is None
    heartbeat = result.state
    (record,) = heartbeat.action_records
    assert record.result.outcome is ActionOutcome.SUCCESS
    assert record.result.summary == f"found out about “{QUESTION}” from 2 pages: Eleven fathoms."
    assert record.result.memory_ids == [str(UUID(int=1000))]
    assert "Confidence 0.90. Sources:" in record.result.brought
    assert "- Reef https://reef.example" in record.result.brought
    assert "Not read: down" in record.result.brought
    assert (heartbeat.work, result.suspend) == ([], None)


@pytest.mark.parametrize(
    ("reply", "outcome", "summary"),
    [
        ({**REPLY, "worth_keeping": False}, "success", "found out about"),
        ({"answer": "", "confidence": 0}, "partial", f"read 2 pages on “{QUESTION}” and found no answer"),
        ("so what", "failure", f"did not find out “{QUESTION}”: the model's answer cannot be used"),
        ({**REPLY, "sources": []}, "failure", f"did not find out “{QUESTION}”: the model's answer"),
    ],
)
def test_an_unusable_or_worthless_answer_is_not_stored(reply: Any, outcome: str, summary: str) -> None:
    answers = Answers()
    result = resume_inquiries(heartbeat_with_inquiries(inquiry_at_answer()), complete_call(reply), answers)
    assert answers.needs == []
    ended = result.state.action_records[0].result
    assert (ended.outcome.value, ended.cost) == (outcome, 3)
    assert ended.summary.startswith(summary)
    assert result.state.work == []


def test_a_deep_answer_is_judged_with_the_pages_of_the_web_call() -> None:
    answers = Answers({CallReply: WEB_RESULT})
    result = resume_inquiries(
        heartbeat_with_inquiries(inquiry_at_answer("deep")), complete_call(REPLY), answers
    )

    assert answers.needs == [CallReply(call_id=WEB)]
    kind, _, request = suspension_of(result)
    assert kind == "appraise"
    assert "Eleven fathoms, too." in request.messages[0].content
    assert result.state.work[0].answer == {
        "text": "Eleven fathoms.",
        "confidence": 0.9,
        "sources": [0, 1],
        "worth_keeping": True,
    }


def test_a_judged_answer_is_stored_with_the_judged_confidence() -> None:
    answers = Answers()
    judged = {"confidence": 0.6, "reason": "two copies"}
    result = resume_inquiries(
        heartbeat_with_inquiries(inquiry_at_appraisal()), complete_call(judged, JUDGE), answers
    )

    ((memory,),) = [need.memories for need in answers.needs]
    assert (memory.detail["confidence"], memory.importance) == (0.6, 0.7)
    assert "Confidence 0.60 (two copies)." in result.state.action_records[0].result.brought


@pytest.mark.parametrize("result", [failed_call("ModelRefused", JUDGE), complete_call("so what", JUDGE)])
def test_an_unjudged_answer_is_stored_with_half_its_confidence(result: EndedCall) -> None:
    answers = Answers()
    ended = resume_inquiries(heartbeat_with_inquiries(inquiry_at_appraisal()), result, answers)

    ((memory,),) = [need.memories for need in answers.needs]
    assert memory.detail["confidence"] == 0.4
    action_result = ended.state.action_records[0].result
    assert action_result.outcome is ActionOutcome.PARTIAL
    assert "nobody could judge it" in action_result.brought


@pytest.mark.parametrize(
    ("step", "kind", "left", "next_model"),
    [
        ("web", "WebFailed", ["b/y"], None),
        # Another model does not help when the web is unavailable.
        ("web", "ModelUnavailable", ["b/y"], None),
        ("answer", "ModelUnavailable", ["b/y", "c/z"], "b/y"),
        ("answer", "ModelTimeout", ["b/y"], "b/y"),
        ("answer", "ModelUnavailable", [], None),
        ("answer", "ModelRefused", ["b/y"], None),
        ("appraise", "ModelUnavailable", ["b/y"], "b/y"),
    ],
)
def test_a_failed_call_asks_the_next_model_or_fails_the_action(
    step: str, kind: str, left: list[str], next_model: str | None
) -> None:
    work = {"web": inquiry(step="web"), "answer": inquiry_at_answer(), "appraise": inquiry_at_appraisal()}[
        step
    ]
    answers = Answers({CallReply: WEB_RESULT})
    result = resume_inquiries(heartbeat_with_inquiries(work, models_left=left), failed_call(kind), answers)

    if next_model is None:
        ended = result.state.action_records[0].result
        assert (ended.outcome, ended.cost) == (ActionOutcome.FAILURE, 3)
        assert ended.summary == f"did not find out “{QUESTION}”: it is away"
        assert (result.state.work, Placing in answers.kinds) == ([], False)
        return
    suspended, model, request = suspension_of(result)
    assert (suspended, model, result.state.models_left) == (step, next_model, left[1:])
    assert "Eleven fathoms." in request.messages[0].content
    assert result.changed == (f"openai/large is out of reach; {next_model} is asked",)


def test_inquiries_are_processed_one_after_the_other() -> None:
    heartbeat = heartbeat_with_inquiries(inquiry_at_answer(), inquiry("deep", place=1))
    result = resume_inquiries(heartbeat, complete_call({**REPLY, "worth_keeping": False}))

    assert [item.place for item in result.state.work] == [1]
    assert [record.result.outcome.value for record in result.state.action_records] == ["success", "unknown"]
    second = Answers().run(PendingWork()(result.state))
    assert suspension_of(second)[0] == "web"
