"""The reflex policy as a model: it answers from the situation itself, at once and for nothing."""

from __future__ import annotations

import json
import time
from decimal import Decimal

from arbor.heartbeat.policy import reflex_reply
from arbor.memory.errands import rule_reply
from arbor.models.handles import Handle
from arbor.models.ports import CallPurpose, ModelReply, ModelRequest, Usage


class ReflexModel:
    """Decides by rules: what to do in a heartbeat, and what maintenance asks about memories."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def handle(self) -> str:
        """The model's handle."""
        return str(self._handle)

    def complete(self, request: ModelRequest, *, deadline_s: float) -> ModelReply:
        """Answer from the request's context; the messages are not read."""
        started = time.monotonic()
        thinks = request.purpose is CallPurpose.THINK
        reply = reflex_reply(request.context) if thinks else rule_reply(request.purpose, request.context)
        text = json.dumps(reply, ensure_ascii=False)
        return ModelReply(
            text=text,
            provider=self._handle.provider,
            model=self._handle.model,
            usage=Usage(),
            cost_usd=Decimal(0),
            latency_ms=(time.monotonic() - started) * 1000,
        )
