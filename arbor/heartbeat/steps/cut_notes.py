"""Audit events of prompts that were cut to the window of their model."""

from __future__ import annotations

from arbor.heartbeat.effects import AuditNote
from arbor.heartbeat.prompts.cuts import TRUNCATED, CutContext
from arbor.heartbeat.state import HeartbeatState


def with_cuts_audited(heartbeat: HeartbeatState, cut: CutContext, *, window: int) -> HeartbeatState:
    """Return the state with the audit event of a cut to a window.

    Without a cut, and for the reflex policy, which reads the whole situation, the state is unchanged.
    """
    if not cut.removed or heartbeat.situation.model_is_reflex:
        return heartbeat
    number, model = heartbeat.situation.beat_number, heartbeat.model
    note = AuditNote(
        action=TRUNCATED,
        message=f"the prompt of heartbeat {number} was cut to the window of {model}: {cut.in_words}",
        detail={
            "heartbeat": str(heartbeat.heartbeat_id),
            "number": number,
            **cut.to_json(model=model, window=window),
        },
    )
    return heartbeat.bringing(audit=[note])
