"""Web look-ups as external calls, whose replies are pages."""

from __future__ import annotations

from collections.abc import Sequence

from arbor.models.ports import CallPurpose, ModelRequest
from arbor.web.plan import Depth

#: The handle of the web in calls and in the ledger, where a model's would be.
WEB_HANDLE = "web/searxng"


def web_request(*, question: str, queries: Sequence[str], depth: Depth) -> ModelRequest:
    """Build the request of a look-up."""
    return ModelRequest(
        purpose=CallPurpose.WEB,
        system="",
        messages=(),
        context={"question": question, "queries": list(queries), "depth": depth.value},
    )
