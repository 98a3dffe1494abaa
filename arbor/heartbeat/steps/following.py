"""Following up: go on to a further round trip, or end."""

from __future__ import annotations

from uuid import UUID

from arbor.heartbeat.beat import Beat
from arbor.heartbeat.context_budget import REPLY_SHARE, estimate_tokens
from arbor.heartbeat.items import Dropped
from arbor.heartbeat.record import TurnRecord
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.turns import follow_up_text, goes_on, merge_replies
from arbor.models.windows import window_of
from arbor.pipeline.engine import NodeResult
from arbor.values import replace


def follow_up(beat: Beat) -> NodeResult[Beat]:
    """Go on to a further round trip with the results, or end with all round trips merged."""
    if beat.failure:
        return NodeResult(state=_failed(beat), changed=(f"turn {beat.turn} came to nothing",))
    results = beat.present.results
    situation = beat.situation_now
    if not goes_on(situation, results, turn=beat.turn, most=beat.turns_allowed):
        return NodeResult(state=_whole(beat))
    text = follow_up_text(situation, results, turn=beat.turn + 1, most=beat.turns_allowed, nonce=beat.mark)
    said = beat.asked_tokens + estimate_tokens(beat.reply_text)
    if said + estimate_tokens(text) > _room(beat):
        return NodeResult(state=_whole(beat), changed=("the model has no room for a further turn",))
    merged = merge_replies(beat.earlier_reply, beat.said)
    noted = {note.text for note in merged.memory_notes}
    beat = taken_in(beat)
    further = replace(
        beat,
        goes_on=True,
        turn=beat.turn + 1,
        answered=beat.call_id,
        follow_up=text,
        said_tokens=said,
        earlier_reply=merged,
        earlier=beat.whole,
        present=TurnRecord(),
        reply=None,
        untaken=[],
        decisions=[],
        vectors={text: vector for text, vector in beat.vectors.items() if text in noted},
    )
    return NodeResult(state=further, changed=(f"goes on to turn {further.turn}",))


def taken_in(beat: Beat) -> Beat:
    """Mark the percepts of the prompt as taken in, once."""
    if beat.heard or not beat.situation.percepts:
        return beat
    percept_ids = [UUID(percept.id) for percept in beat.situation.percepts]
    return replace(beat.bringing(heard=percept_ids), heard=True)


def _room(beat: Beat) -> int:
    """Return the most tokens of a prompt that leave the reply its share of the window."""
    window = window_of(beat.model, otherwise=beat.rules.model_context)
    return window - min(beat.rules.reply_tokens, int(window * REPLY_SHARE))


def _whole(beat: Beat) -> Beat:
    """Return the state with all replies merged."""
    return replace(beat, goes_on=False, reply=merge_replies(beat.earlier_reply, beat.said))


def _failed(beat: Beat) -> Beat:
    """Return the state of the earlier round trips, with the failure of the last one on record."""
    lost = Dropped(path=f"turn {beat.turn}", value="", reason=beat.failure)
    return replace(
        beat,
        goes_on=False,
        failure="",
        unreadable="",
        reply=beat.earlier_reply or Reply(),
        present=TurnRecord(dropped=[lost]),
    )
