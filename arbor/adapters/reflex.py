"""The reflex policy as a model: it answers from the situation itself, at once and for nothing."""

from __future__ import annotations

import json
import time
from decimal import Decimal

from arbor.errors import ModelRejected
from arbor.heartbeat.policy import reflex_reply
from arbor.models.handles import Handle
from arbor.models.ports import CallPurpose, ModelReply, ModelRequest, Usage


class ReflexModel:
    """Decides by rules; it can think, and nothing else."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def handle(self) -> str:
        """The model's handle."""
        return str(self._handle)

    def complete(self, request: ModelRequest, *, deadline_s: float) -> ModelReply:
        """Answer from the request's context; the messages are not read."""
        if request.purpose is not CallPurpose.THINK:
            raise ModelRejected(f"the reflex policy cannot {request.purpose}: it only decides heartbeats")
        started = time.monotonic()
        text = json.dumps(reflex_reply(request.context), ensure_ascii=False)
        return ModelReply(
            text=text,
            provider=self._handle.provider,
            model=self._handle.model,
            usage=Usage(),
            cost_usd=Decimal(0),
            latency_ms=(time.monotonic() - started) * 1000,
        )
