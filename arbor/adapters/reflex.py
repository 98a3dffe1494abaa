"""The reflex policy as a model: answers by rule from the situation, at once and free of charge."""

from __future__ import annotations

import json
import time
from decimal import Decimal

from arbor.contacts.chat_reply import reflex_answer
from arbor.heartbeat.reflex.policy import reflex_reply
from arbor.memory.maintenance.calls import rule_reply
from arbor.models.handles import Handle
from arbor.models.ports import CallPurpose, ModelReply, ModelRequest, TextSink
from arbor.models.usage import Usage
from arbor.web.answers import rule_answer, rule_appraisal
from arbor.workflows.prompts import rule_output


class ReflexModel:
    """Answers heartbeats, conversations, inquiries, steps of workflows and maintenance calls by rule."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def handle(self) -> str:
        """The model's handle."""
        return str(self._handle)

    def complete(
        self, request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None
    ) -> ModelReply:
        """Answer from the request's context; the messages are not read, and the answer comes at once."""
        started = time.monotonic()
        if request.purpose is CallPurpose.WORKFLOW:
            return self._reply(rule_output(request.context), started)
        if request.purpose is CallPurpose.THINK:
            reply = reflex_reply(request.context)
        elif request.purpose is CallPurpose.CHAT:
            reply = reflex_answer(request.context)
        elif request.purpose is CallPurpose.ANSWER:
            reply = rule_answer(request.context)
        elif request.purpose is CallPurpose.APPRAISE:
            reply = rule_appraisal(request.context)
        else:
            reply = rule_reply(request.purpose, request.context)
        return self._reply(json.dumps(reply, ensure_ascii=False), started)

    def _reply(self, text: str, started: float) -> ModelReply:
        return ModelReply(
            text=text,
            provider=self._handle.provider,
            model=self._handle.model,
            usage=Usage(),
            cost_usd=Decimal(0),
            latency_ms=(time.monotonic() - started) * 1000,
        )
