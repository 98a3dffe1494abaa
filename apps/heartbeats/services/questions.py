"""Questions of heartbeats as their calls store them: the request and the sections of its prompt, packed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.tenants.packing import pack, unpack
from apps.tenants.statements import fetch
from arbor.heartbeat.needs import AskedBefore, Question
from arbor.heartbeat.questions import request_of, sections_of, stored_sections
from arbor.models.ports import CallPurpose

# The first question, or the one that was answered by a call.
_ASKED = """
SELECT request, sections, reply FROM heartbeats_externalcall
WHERE tenant_id = %(tenant)s AND heartbeat_id = %(beat)s AND purpose = %(purpose)s
    AND (%(call)s::uuid IS NULL OR id = %(call)s::uuid)
ORDER BY requested_at LIMIT 1
"""


def packed_question(question: Question) -> tuple[bytes, bytes]:
    """Return the request and the sections of a question as its call stores them."""
    sections: list[dict[str, Any]] = stored_sections(question.sections, question.request)
    return pack(question.request), pack(sections)


def asked_before(*, heartbeat_id: UUID, call_id: UUID | None) -> AskedBefore:
    """Return the heartbeat's first question, or the one that this call answered. One statement."""
    ((asked, parts, reply),) = fetch(
        _ASKED, beat=heartbeat_id, purpose=CallPurpose.THINK.value, call=call_id
    )
    stored = unpack(asked)
    request = request_of(stored)
    return AskedBefore(
        system=request.system,
        messages=request.messages,
        sections=tuple(sections_of(unpack(parts), stored)),
        reply=reply,
    )
