"""Work: what takes the web and models to do. One inquiry after the other, each call durable, none in a transaction."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.heartbeats.acts.inquiry import Found, found_out
from apps.heartbeats.handlers.act import desk_of
from apps.heartbeats.handlers.observe import BEATS_SESSION
from apps.heartbeats.handlers.standing import let_stand
from apps.heartbeats.handlers.terms import model_in
from apps.heartbeats.handlers.think import OUT_OF_REACH, next_model
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
from arbor.models.windows import window_of
from arbor.pipeline.engine import Context, NodeResult, Phase, Suspension
from arbor.web.answers import Answer, answer_request, appraise_request, read_answer, read_appraisal
from arbor.web.lookup import Findings
from arbor.web.plan import Depth
from arbor.web.ports import Page

#: What a deep inquiry recalls besides (seed 004, 3.2.4).
_RECALLED = 5


class Work:
    """Carries on what the actions began; comes again while context.work_left is above 0.

    An inquiry asks the web, then a model for the answer, then, if deep, a model for the confidence; where that model is
    out of reach, the next of the beat's tier. Whatever call fails, the action has failed with its reason, its energy is
    spent, and nothing is made up.
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
        stands = let_stand(context)
        waiting = _waiting(context, {**job, "step": CallPurpose.WEB.value}, payload)
        return NodeResult(updates={**stands, **waiting.updates}, suspend=waiting.suspend)

    def resume(self, context: Context, result: dict[str, Any]) -> NodeResult:
        """Go on with what the call brought: to the next call, or to the end of the inquiry."""
        job = context["work"][0]
        if result["status"] != CallStatus.COMPLETE:
            if job["step"] in _ASKING and result["error_kind"] in OUT_OF_REACH and context["models_left"]:
                return self._ask_next(context, job)
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
            "remembered": _remembered(context, job),
        }
        return _asking(context, job, findings.pages)

    def _ask_next(self, context: Context, job: dict[str, Any]) -> NodeResult:
        """Put the same question to the next model of the tier; the beat goes on with it."""
        updates = next_model(context)
        asked = _asking({**context, **updates}, job, _pages_of(job))
        said = f"{context['model']} is out of reach; {updates['model']} is asked"
        return replace(asked, updates={**updates, **asked.updates}, changed=(said,))

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
        return _asking(context, job, _pages_of(job))

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


#: Steps at which a model is asked.
_ASKING = frozenset({CallPurpose.ANSWER.value, CallPurpose.APPRAISE.value})


def _asking(context: Context, job: dict[str, Any], pages: Sequence[Page]) -> NodeResult:
    """Ask the model for the answer, or what it is worth, as far as the inquiry is."""
    nonce, for_rule = secrets.token_hex(8), _by_rule(context)
    window = window_of(context["model"], otherwise=settings.ARBOR_MODEL_CONTEXT)
    if job["step"] == CallPurpose.ANSWER:
        request = answer_request(
            job["question"],
            pages,
            remembered=job["remembered"],
            nonce=nonce,
            window=window,
            for_rule=for_rule,
        )
    else:
        answer = _answer_in(job, confidence=job["answer"]["confidence"])
        request = appraise_request(
            job["question"], answer, pages, nonce=nonce, window=window, for_rule=for_rule
        )
    return _waiting(context, job, _payload(context, request))


def _pages_of(job: dict[str, Any]) -> Sequence[Page]:
    """Return the pages that were read: the call that read them has them, and no checkpoint carries them along."""
    read = ExternalCall.objects.values_list("reply", flat=True).get(id=UUID(job["call_id"]))
    return Findings.from_json(json.loads(read)).pages


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
