"""The web as a worker of the model queue asks it: a call like a model's, with pages for a reply."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.conf import settings

from apps import web
from arbor.models.ports import CallPurpose, ModelReply, ModelRequest, Usage
from arbor.web.lookup import look_up
from arbor.web.plan import Depth, plan_inquiry

#: What stands in the place of a model's handle, in the call and in the ledger.
WEB_HANDLE = "web/searxng"


def web_payload(*, question: str, queries: Sequence[str], depth: Depth) -> dict[str, Any]:
    """Return the call that looks a question up: what a suspended node hands over."""
    request = ModelRequest(
        purpose=CallPurpose.WEB,
        system="",
        messages=(),
        context={"question": question, "queries": list(queries), "depth": depth.value},
    )
    return {"model": WEB_HANDLE, "request": request.to_json(), "sections": []}


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
