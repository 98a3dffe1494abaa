"""Ask the web for a worker of the model queue."""

from __future__ import annotations

import json
import time
from decimal import Decimal

from django.conf import settings

from apps import web
from arbor.models.ports import ModelReply, ModelRequest
from arbor.models.usage import Usage
from arbor.web.calls import WEB_HANDLE
from arbor.web.lookup import look_up
from arbor.web.plan import Depth, plan_inquiry


def ask_the_web(request: ModelRequest, *, deadline_s: float) -> ModelReply:
    """Search and read, with no transaction open; the reply's text is the findings as JSON.

    Raises WebFailed when nothing could be found or read, ConfigurationInvalid when the web is not set up.
    """
    asked = request.context
    plan = plan_inquiry(asked["question"], asked["queries"], Depth(asked["depth"]))
    started = time.monotonic()
    findings = look_up(
        plan,
        search=web.search(),
        fetch=web.fetch(),
        deadline_s=min(settings.ARBOR_WEB_DEADLINE_S, deadline_s),
    )
    provider, _, name = WEB_HANDLE.partition("/")
    return ModelReply(
        text=json.dumps(findings.to_json(), ensure_ascii=False),
        provider=provider,
        model=name,
        usage=Usage(),
        cost_usd=Decimal(0),
        latency_ms=(time.monotonic() - started) * 1000,
    )
