"""Pack questions of heartbeats for storage, and read earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from apps.tenants.packing import pack, unpack
from apps.tenants.statements import fetch
from arbor.heartbeat.needs import AskedBefore, Question
from arbor.heartbeat.prompts.questions import request_of, sections_of, stored_sections
from arbor.models.ports import CallPurpose

# The first question of each heartbeat, or the one of a given call.
_ASKED = """
SELECT asked.request, asked.sections, asked.reply
FROM unnest(%(beats)s::uuid[], %(calls)s::uuid[]) WITH ORDINALITY AS r (beat, call, place)
CROSS JOIN LATERAL (
    SELECT request, sections, reply FROM calls_externalcall
    WHERE tenant_id = %(tenant)s AND heartbeat_id = r.beat AND purpose = %(purpose)s
        AND (r.call IS NULL OR id = r.call)
    ORDER BY requested_at LIMIT 1
) asked ORDER BY r.place
"""


def packed_question(question: Question) -> tuple[bytes, bytes]:
    """Return the request and the sections of a question as its call stores them."""
    sections: list[dict[str, Any]] = stored_sections(question.sections, question.request)
    return pack(question.request), pack(sections)


def asked_before(calls: Sequence[tuple[UUID, UUID | None]]) -> list[AskedBefore]:
    """Return the question of each (heartbeat, call), or the heartbeat's first one for None. One statement."""
    beats, answered = zip(*calls, strict=True)
    rows = fetch(_ASKED, beats=list(beats), calls=list(answered), purpose=CallPurpose.THINK.value)
    return [_asked(*row) for row in rows]


def _asked(request: bytes, sections: bytes, reply: str) -> AskedBefore:
    stored = unpack(request)
    asked = request_of(stored)
    return AskedBefore(
        system=asked.system,
        messages=asked.messages,
        sections=tuple(sections_of(unpack(sections), stored)),
        reply=reply,
    )
