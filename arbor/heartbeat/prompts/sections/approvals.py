"""The section about actions that people approve or deny."""

from __future__ import annotations

from collections.abc import Sequence

from arbor.authority.approvals import ApprovalStatus
from arbor.heartbeat.situation import ApprovalRequestView
from arbor.quotations import Data, line

#: Requests that are shown; the text counts the others.
SHOWN = 10
_REASON_LENGTH = 300
_WORDS = {
    ApprovalStatus.PENDING: "waits for a person",
    ApprovalStatus.APPROVED: "approved, executed in this heartbeat before your actions",
    ApprovalStatus.DENIED: "denied",
}


def approvals(requests: Sequence[ApprovalRequestView], data: Data) -> str:
    """Render the requests for approval."""
    if not requests:
        return ""
    body = data.block(_request(request) for request in requests[:SHOWN])
    left = len(requests) - SHOWN
    more = f"\nBesides these: {left}." if left > 0 else ""
    return f"## Requests for approval\nDo not propose these actions again.\n{body}{more}"


def _request(request: ApprovalRequestView) -> str:
    about = f" “{line(request.about)}”" if request.about else ""
    reason = f": {line(request.reason, _REASON_LENGTH)}" if request.reason else ""
    return f"{request.action}{about}: {_WORDS[request.status]}{reason}"
