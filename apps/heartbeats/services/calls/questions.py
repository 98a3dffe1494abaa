"""Pack questions of heartbeats for storage, and read earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from apps.tenants.packing import pack, unpack
from apps.tenants.statements import fetch
from arbor.heartbeat.needs import PastExchange, Question
from arbor.heartbeat.prompts.questions import request_of, sections_of, stored_sections
from arbor.models.ports import CallPurpose

# The first question of each heartbeat, or the one of a given call.
_ASKED = """
SELECT asked.request, asked.sections, asked.reply
FROM unnest(%(heartbeats)s::uuid[], %(calls)s::uuid[]) WITH ORDINALITY AS r (heartbeat, call, place)
CROSS JOIN LATERAL (
    SELECT request, sections, reply FROM calls_externalcall
    WHERE tenant_id = %(tenant)s AND heartbeat_id = r.heartbeat AND purpose = %(purpose)s
        AND (r.call IS NULL OR id = r.call)
    ORDER BY requested_at LIMIT 1
) asked ORDER BY r.place
"""


def packed_question(question: Question) -> tuple[bytes, bytes]:
    """Return the request and the sections of a question as its call stores them."""
    sections = stored_sections(question.sections, question.request)
    return pack(question.request), pack(sections)


def past_exchanges(calls: Sequence[tuple[UUID, UUID | None]]) -> list[PastExchange]:
    """Return the question of each (heartbeat, call) with its reply; without a call, the heartbeat's first. One statement."""
    heartbeats, call_ids = zip(*calls, strict=True)
    rows = fetch(_ASKED, heartbeats=list(heartbeats), calls=list(call_ids), purpose=CallPurpose.THINK.value)
    return [_past_exchange(*row) for row in rows]


def _past_exchange(request: bytes, sections: bytes, reply: bytes) -> PastExchange:
    stored = unpack(request)
    asked = request_of(stored)
    return PastExchange(
        system=asked.system,
        messages=asked.messages,
        sections=tuple(sections_of(unpack(sections), stored)),
        reply=unpack(reply),
    )
