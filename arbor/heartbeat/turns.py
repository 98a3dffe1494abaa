"""The turns of a heartbeat: when it goes on after reading what its actions brought, and what it is told then (seed 000, 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arbor.heartbeat.items import Dropped
from arbor.heartbeat.reply import MAX_NEW_GOALS, Reply
from arbor.heartbeat.results import ActionResult
from arbor.heartbeat.sections.text import Data, line
from arbor.heartbeat.situation import Situation

# Seed 000's origin: the loop with tool results ends after ten turns, the first one included.
MAX_TURNS = 10
# What all results of a turn may bring into the next prompt, and the least that each of them may, in characters.
BROUGHT_LENGTH = 24_000
LEAST_BROUGHT = 1_000

GO_ON = (
    "You are still in the same heartbeat. What you said under the other keys of your last answer has been taken: do not say "
    "it again. Answer with the JSON object only; an answer without actions ends this heartbeat."
)


def turns_allowed(*, own: int | None, installed: int) -> int:
    """Return how many turns a beat may have: one, and as many further ones as its agent's policy or the installation says."""
    further = installed if own is None else own
    return min(max(further, 0) + 1, MAX_TURNS)


def goes_on(situation: Situation, results: Sequence[ActionResult], *, turn: int, most: int) -> bool:
    """Return whether a beat thinks again: something was brought to read, and there is energy left to act on it.

    Fixed rules read nothing, and a day's budget that runs low allows one turn.
    """
    return (
        turn < most
        and not situation.model_is_reflex
        and situation.degradation.may_follow_up
        and situation.energy > 0
        and any(result.to_read for result in results)
    )


def follow_up_text(
    situation: Situation, results: Sequence[ActionResult], *, turn: int, most: int, nonce: str
) -> str:
    """Return the message of a further turn: what each action brought, and what energy is left of it.

    `nonce` is the mark of the beat's first message; `turn` is the one that begins.
    """
    longest = max(BROUGHT_LENGTH // max(sum(result.to_read for result in results), 1), LEAST_BROUGHT)
    entries = []
    for result in results:
        entries.append(f"{result.action}: {result.outcome}; {line(result.summary, LEAST_BROUGHT)}")
        if result.to_read:
            entries.append(f"    {line(result.brought, longest)}")
    return (
        f"## What your actions brought (turn {turn} of at most {most})\n{Data(nonce).block(entries)}\n\n"
        f"{situation.energy:g} {situation.energy_unit} left. {GO_ON}"
    )


def within_beat(earlier: Reply | None, reply: Reply) -> tuple[Reply, tuple[Dropped, ...]]:
    """Return a turn's reply with no more new goals than its beat may still have, and what is left over."""
    room = MAX_NEW_GOALS - (len(earlier.new_goals) if earlier is not None else 0)
    extra = reply.new_goals[room:]
    if not extra:
        return reply, ()
    reason = f"at most {MAX_NEW_GOALS} are taken in a heartbeat, whatever its turns"
    dropped = tuple(
        Dropped(path=f"new_goals[{room + place}]", value=goal.title, reason=reason)
        for place, goal in enumerate(extra)
    )
    return reply.model_copy(update={"new_goals": reply.new_goals[:room]}), dropped


def merge_replies(earlier: Reply | None, reply: Reply) -> Reply:
    """Return both turns as one reply: their thoughts one after the other, their lists joined."""
    if earlier is None:
        return reply
    whole: dict[str, Any] = {
        name: [*getattr(earlier, name), *getattr(reply, name)]
        for name in Reply.model_fields
        if name != "thinking"
    }
    whole["thinking"] = "\n\n".join(filter(None, (earlier.thinking, reply.thinking)))
    # Both were validated, and together they keep to a beat's limits (`within_beat`).
    return Reply.model_construct(**whole)
