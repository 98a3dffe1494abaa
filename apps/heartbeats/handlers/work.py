"""Work: what takes the web and models to do. One inquiry after the other, each call durable, none in a transaction."""

from __future__ import annotations

import json
import secrets
from typing import Any
from uuid import UUID

from apps.heartbeats.acts.inquiry import Found, found_out
from apps.heartbeats.handlers.act import desk_of
from apps.heartbeats.handlers.observe import BEATS_SESSION, model_in
from apps.heartbeats.models import CallStatus, ExternalCall
from apps.heartbeats.services.web_calls import web_payload
from apps.memories.services.activation import note_recall
from apps.memories.services.recall import recall_in_scope
from arbor.clock import Clock
from arbor.errors import ReplyInvalid
from arbor.heartbeat.results import ActionOutcome, ActionResult
from arbor.heartbeat.situation import Situation
from arbor.models.handles import REFLEX
from arbor.models.ports import CallPurpose, ModelRequest
from arbor.pipeline.engine import Context, NodeResult, Phase, Suspension
from arbor.web.answers import Answer, answer_request, appraise_request, read_answer, read_appraisal
from arbor.web.lookup import Findings
from arbor.web.plan import Depth

#: What a deep inquiry recalls besides (seed 004, 3.2.4).
_RECALLED = 5


class Work:
    """Carries on what the actions began; comes again while context.work_left is above 0.

    An inquiry asks the web, then a model for the answer, then, if deep, a model for the confidence. Whatever call fails,
    the action has failed with its reason, its energy is spent, and nothing is made up.
    """

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Begin the first of the inquiries that are left: ask the web."""
        if not context["work"]:
            return NodeResult(updates={"work_left": 0})
        job = context["work"][0]
        payload = web_payload(question=job["question"], queries=job["queries"], depth=Depth(job["depth"]))
        return _waiting(context, {**job, "step": CallPurpose.WEB.value}, payload)

    def resume(self, context: Context, result: dict[str, Any]) -> NodeResult:
        """Go on with what the call brought: to the next call, or to the end of the inquiry."""
        job = context["work"][0]
        if result["status"] != CallStatus.COMPLETE:
            return self._unappraised(context, job, result) or self._failed(context, job, result["error"])
        try:
            return _STEPS[job["step"]](self, context, job, result)
        except ReplyInvalid as error:
            reason = f"the model's {job['step']} cannot be used: {error}"
            return self._unappraised(context, job, result) or self._failed(context, job, reason)

    def _found(self, context: Context, job: dict[str, Any], result: dict[str, Any]) -> NodeResult:
        findings = Findings.from_json(json.loads(result["text"]))
        job = {
            **job,
            "step": CallPurpose.ANSWER.value,
            "call_id": result["call_id"],
            "pages": [{"url": page.url, "title": page.title} for page in findings.pages],
            "failures": list(findings.failures),
        }
        request = answer_request(
            job["question"],
            findings.pages,
            remembered=_remembered(context, job),
            nonce=secrets.token_hex(8),
            for_rule=_by_rule(context),
        )
        return _waiting(context, job, _payload(context, request))

    def _answered(self, context: Context, job: dict[str, Any], result: dict[str, Any]) -> NodeResult:
        answer = read_answer(result["text"], pages=len(job["pages"]))
        if not answer.text or job["depth"] == Depth.SHALLOW:
            return self._done(context, job, answer)
        job = {
            **job,
            "step": CallPurpose.APPRAISE.value,
            "answer": {
                "text": answer.text,
                "confidence": answer.confidence,
                "sources": list(answer.sources),
                "worth_keeping": answer.worth_keeping,
            },
        }
        # The checkpoint does not carry the pages along: the call that read them has them.
        read = ExternalCall.objects.values_list("reply", flat=True).get(id=UUID(job["call_id"]))
        pages = Findings.from_json(json.loads(read)).pages
        request = appraise_request(
            job["question"], answer, pages, nonce=secrets.token_hex(8), for_rule=_by_rule(context)
        )
        return _waiting(context, job, _payload(context, request))

    def _appraised(self, context: Context, job: dict[str, Any], result: dict[str, Any]) -> NodeResult:
        appraisal = read_appraisal(result["text"])
        return self._done(
            context, job, _answer_in(job, confidence=appraisal.confidence), note=appraisal.reason
        )

    def _unappraised(
        self, context: Context, job: dict[str, Any], result: dict[str, Any]
    ) -> NodeResult | None:
        """End an inquiry whose answer is there, and that nobody could judge: it is kept, half as sure."""
        if job["step"] != CallPurpose.APPRAISE:
            return None
        answer = _answer_in(job, confidence=job["answer"]["confidence"] / 2)
        why = f"nobody could judge it: {result['error'] or 'the reply cannot be used'}"
        return self._done(context, job, answer, note=why, appraised=False)

    def _done(
        self, context: Context, job: dict[str, Any], answer: Answer, *, note: str = "", appraised: bool = True
    ) -> NodeResult:
        found = Found(
            question=job["question"],
            depth=Depth(job["depth"]),
            answer=answer,
            pages=job["pages"],
            failures=job["failures"],
            note=note,
            appraised=appraised,
        )
        began = context["results"][job["place"]]
        return _ended(context, job, found_out(desk_of(context, self._clock.now()), began, found))

    def _failed(self, context: Context, job: dict[str, Any], reason: str) -> NodeResult:
        began: ActionResult = context["results"][job["place"]]
        summary = f"did not find out {job['question']!r}: {reason}"
        ended = began.model_copy(
            update={"outcome": ActionOutcome.FAILURE, "summary": summary, "brought": summary}
        )
        return _ended(context, job, ended)


_STEPS = {
    CallPurpose.WEB.value: Work._found,
    CallPurpose.ANSWER.value: Work._answered,
    CallPurpose.APPRAISE.value: Work._appraised,
}


def _waiting(context: Context, job: dict[str, Any], payload: dict[str, Any]) -> NodeResult:
    return NodeResult(
        updates={"work": [job, *context["work"][1:]]},
        suspend=Suspension(kind=job["step"], payload=payload),
    )


def _ended(context: Context, job: dict[str, Any], result: ActionResult) -> NodeResult:
    """Put the result in its place, among the results and on record; the next inquiry is on."""
    results = [*context["results"]]
    results[job["place"]] = result
    record = context["record"]
    actions = [*record["actions"]]
    actions[job["place"]] = {**actions[job["place"]], **result.model_dump(mode="json")}
    left = context["work"][1:]
    return NodeResult(
        updates={
            "results": results,
            "record": {**record, "actions": actions},
            "work": left,
            "work_left": len(left),
        },
        changed=(f"{result.action}: {result.summary}",),
    )


def _payload(context: Context, request: ModelRequest) -> dict[str, Any]:
    return {"model": context["model"], "request": request.to_json(), "sections": []}


def _by_rule(context: Context) -> bool:
    return str(context["model"]).startswith(f"{REFLEX}/")


def _answer_in(job: dict[str, Any], *, confidence: float) -> Answer:
    written = job["answer"]
    return Answer(
        text=written["text"],
        confidence=confidence,
        sources=tuple(written["sources"]),
        worth_keeping=written["worth_keeping"],
    )


def _remembered(context: Context, job: dict[str, Any]) -> list[str]:
    """Return what the agent remembers of the question; only a deep inquiry asks."""
    if job["depth"] != Depth.DEEP:
        return []
    situation: Situation = context["situation"]
    agent_id = UUID(situation.agent_id)
    found = recall_in_scope(
        agent_id=agent_id,
        text=job["question"],
        vector=context["vectors"].get(job["question"]),
        model=model_in(context),
        limit=_RECALLED,
        without_session=BEATS_SESSION,
    )
    note_recall(agent_id=agent_id, recalled={memory.id: memory.score for memory in found})
    return [memory.content for memory in found]
