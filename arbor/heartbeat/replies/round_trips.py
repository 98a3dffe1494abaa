"""Round trips of a heartbeat: conditions, messages and merged replies (seed 000, 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arbor.goals.values import MAX_NEW_PER_HEARTBEAT
from arbor.heartbeat.budgets import amount_text
from arbor.heartbeat.replies.items import Dropped, places
from arbor.heartbeat.replies.reply import REPLY_KEYS, Reply
from arbor.heartbeat.results import ActionResult
from arbor.heartbeat.situation import Situation
from arbor.knowledge.merging import SEARCH_KNOWLEDGE, SEARCH_MY_MEMORIES
from arbor.quotations import Data, line

# The origin of seed 000: ten round trips, the first one included.
MAX_ROUND_TRIPS = 10
#: Characters of all results in the next prompt.
BROUGHT_LENGTH = 24_000
#: Characters that each result gets at least, however little room is left.
MIN_BROUGHT = 500
#: Characters of a result's summary.
SUMMARY_LENGTH = 1_000
_SEARCHES = frozenset({SEARCH_KNOWLEDGE, SEARCH_MY_MEMORIES})

_STILL = "You are still in the same heartbeat."
_TAKEN = "What you said under the other keys of your last answer has been taken: do not say it again."
_OTHERS_TAKEN = "What is not listed above as not taken has been taken: do not say that again."
_ANSWER = "Answer with the JSON object only; an answer without actions ends this heartbeat."
#: The most dropped items whose reasons the next prompt lists, and the characters of each reason.
MAX_DROPPED = 8
DROPPED_LENGTH = 300


def round_trips_allowed(*, own: int | None, installed: int) -> int:
    """Return the most round trips: one, and the further ones of the agent's policy or the installation."""
    further = installed if own is None else own
    return min(max(further, 0) + 1, MAX_ROUND_TRIPS)


def goes_on(situation: Situation, results: Sequence[ActionResult], *, round_trip: int, most: int) -> bool:
    """Return whether a further round trip follows: round trips, energy and budget are left, a result has a text to read, and the model is not the reflex."""
    return (
        round_trip < most
        and not situation.model_is_reflex
        and situation.degradation.may_follow_up
        and situation.energy > 0
        and any(result.brought for result in results)
    )


def follow_up_text(
    situation: Situation,
    results: Sequence[ActionResult],
    *,
    round_trip: int,
    most: int,
    nonce: str,
    dropped: Sequence[Dropped] = (),
    room: int = BROUGHT_LENGTH,
) -> str:
    """Return the message of the next round trip, with the results and the dropped items of the last reply.

    `nonce` is the mark of the first message, `room` the characters of all results.
    """
    searches, others = _longest([result for result in results if result.brought], room)
    entries = []
    for result in results:
        entries.append(f"{result.action}: {result.outcome}; {line(result.summary, SUMMARY_LENGTH)}")
        if result.brought:
            longest = searches if result.action in _SEARCHES else others
            entries.append(f"    {line(result.brought, longest)}")
    return (
        f"## What your actions brought (round trip {round_trip} of at most {most})\n{Data(nonce).block(entries)}\n\n"
        f"{_dropped_text(dropped, nonce)}{amount_text(situation.energy, situation.energy_unit)} left."
        f" {_STILL} {_OTHERS_TAKEN if dropped else _TAKEN} {_ANSWER}"
    )


def _dropped_text(dropped: Sequence[Dropped], nonce: str) -> str:
    """Return the section of the dropped items; empty without one."""
    if not dropped:
        return ""
    entries = [line(item.in_words, DROPPED_LENGTH) for item in dropped[:MAX_DROPPED]]
    if others := dropped[MAX_DROPPED:]:
        names = ", ".join(item.path or item.reason for item in others)
        entries.append(line(f"and {len(others)} more: {names}", SUMMARY_LENGTH))
    return f"## What was not taken of your last answer\n{Data(nonce).block(entries)}\n\n"


def _longest(results: Sequence[ActionResult], room: int) -> tuple[int, int]:
    """Return the limits in characters of a search result and of any other result; search results are cut first."""
    whole = max(room, BROUGHT_LENGTH) // max(len(results), 1)

    def share(lengths: Sequence[int], left: int) -> int:
        return max(min(left // max(len(lengths), 1), whole), MIN_BROUGHT)

    searched = [len(result.brought) for result in results if result.action in _SEARCHES]
    other = [len(result.brought) for result in results if result.action not in _SEARCHES]
    searches = share(searched, room - sum(min(length, whole) for length in other))
    return searches, share(other, room - sum(min(length, searches) for length in searched))


def within_heartbeat(earlier: Reply | None, reply: Reply) -> tuple[Reply, tuple[Dropped, ...]]:
    """Return a reply cut to the heartbeat's limit of new goals, and the dropped goals."""
    room = MAX_NEW_PER_HEARTBEAT - (len(earlier.new_goals) if earlier is not None else 0)
    extra = reply.new_goals[room:]
    if not extra:
        return reply, ()
    reason = f"at most {MAX_NEW_PER_HEARTBEAT} are taken in a heartbeat, whatever its round trips"
    paths = reply.paths_of("new_goals", reply.new_goals)
    dropped = tuple(
        Dropped(path=path, value=goal.title, reason=reason)
        for path, goal in zip(paths[room:], extra, strict=True)
    )
    return reply.with_only("new_goals", range(room)), dropped


def merge_replies(earlier: Reply | None, reply: Reply) -> Reply:
    """Return one reply with the lists of both in order and their thinking joined; the reply itself without an earlier one.

    Each item keeps its path in its own reply; of lists within an item, no paths are kept.
    """
    if earlier is None:
        return reply
    merged: dict[str, Any] = {}
    item_paths: dict[str, list[str]] = {}
    for name in REPLY_KEYS:
        if name == "thinking":
            continue
        before, after = getattr(earlier, name), getattr(reply, name)
        merged[name] = [*before, *after]
        paths = [*earlier.paths_of(name, before), *reply.paths_of(name, after)]
        if paths != places(name, len(paths)):
            item_paths[name] = paths
    merged["item_paths"] = item_paths
    merged["thinking"] = "\n\n".join(filter(None, (earlier.thinking, reply.thinking)))
    # Both replies were validated, and `within_heartbeat` checks their common limit.
    return Reply.model_construct(**merged)
