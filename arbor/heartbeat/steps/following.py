"""Following up: go on to a further round trip, or end."""

from __future__ import annotations

from uuid import UUID

from arbor.heartbeat.fitting import REPLY_SHARE, estimate_tokens
from arbor.heartbeat.items import Dropped
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.results import TurnRecord
from arbor.heartbeat.state import Beat
from arbor.heartbeat.turns import follow_up_text, goes_on, merge_replies
from arbor.models.windows import window_of
from arbor.pipeline.engine import NodeResult
from arbor.values import replace


def follow_up(heartbeat: Beat) -> NodeResult[Beat]:
    """Go on to a further round trip with the results, or end with all round trips merged."""
    if heartbeat.failure:
        return NodeResult(state=_failed(heartbeat), changed=(f"turn {heartbeat.turn} came to nothing",))
    results = heartbeat.present.results
    situation = heartbeat.situation_now
    if not goes_on(situation, results, turn=heartbeat.turn, most=heartbeat.turns_allowed):
        return NodeResult(state=_whole(heartbeat))
    text = follow_up_text(
        situation, results, turn=heartbeat.turn + 1, most=heartbeat.turns_allowed, nonce=heartbeat.mark
    )
    said = heartbeat.asked_tokens + estimate_tokens(heartbeat.reply_text)
    if said + estimate_tokens(text) > _room(heartbeat):
        return NodeResult(state=_whole(heartbeat), changed=("the model has no room for a further turn",))
    merged = merge_replies(heartbeat.earlier_reply, heartbeat.said)
    noted = {note.text for note in merged.memory_notes}
    heartbeat = taken_in(heartbeat)
    further = replace(
        heartbeat,
        goes_on=True,
        turn=heartbeat.turn + 1,
        answered=heartbeat.call_id,
        follow_up=text,
        said_tokens=said,
        earlier_reply=merged,
        earlier=heartbeat.whole,
        present=TurnRecord(),
        reply=None,
        untaken=[],
        decisions=[],
        vectors={text: vector for text, vector in heartbeat.vectors.items() if text in noted},
    )
    return NodeResult(state=further, changed=(f"goes on to turn {further.turn}",))


def taken_in(heartbeat: Beat) -> Beat:
    """Mark the percepts of the prompt as taken in, once."""
    if heartbeat.heard or not heartbeat.situation.percepts:
        return heartbeat
    percept_ids = [UUID(percept.id) for percept in heartbeat.situation.percepts]
    return replace(heartbeat.bringing(heard=percept_ids), heard=True)


def _room(heartbeat: Beat) -> int:
    """Return the most tokens of a prompt that leave the reply its share of the window."""
    window = window_of(heartbeat.model, otherwise=heartbeat.rules.model_context)
    return window - min(heartbeat.rules.reply_tokens, int(window * REPLY_SHARE))


def _whole(heartbeat: Beat) -> Beat:
    """Return the state with all replies merged."""
    return replace(heartbeat, goes_on=False, reply=merge_replies(heartbeat.earlier_reply, heartbeat.said))


def _failed(heartbeat: Beat) -> Beat:
    """Return the state of the earlier round trips, with the failure of the last one on record."""
    lost = Dropped(path=f"turn {heartbeat.turn}", value="", reason=heartbeat.failure)
    return replace(
        heartbeat,
        goes_on=False,
        failure="",
        unreadable="",
        reply=heartbeat.earlier_reply or Reply(),
        present=TurnRecord(dropped=[lost]),
    )
