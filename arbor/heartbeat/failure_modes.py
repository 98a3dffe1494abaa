"""How an agent's life goes wrong, and how that is noticed (seed 004, section 9): rules over its latest beats."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from arbor.heartbeat.energy import REGENERATION
from arbor.heartbeat.usage import Degradation, Scarcest

# Seed 004: 9.2 (hoarding), 9.3 (spam), 9.5 (worker failure).
BEATS_WATCHED = 24
UNUSED_ENERGY = 5.0
REACHED_OUT_A_DAY = 5
STALE_NEIGHBORHOODS = 100
UNSUMMARIZED_EPISODES = 10
# Seed 004, 9.4 leaves these open; our choice.
BEATS_OF_A_LOOP = 3
SIMILAR_NARRATIVES = 0.8
# Seed 004, 9.6: one refusal may be the moment's; our choice, as is what piles up.
REFUSALS = 2
WAITING_PERCEPTS = 20
PENDING_INTENTS = 10

#: How many of the latest beats are looked at for loops; so many narratives are read.
NARRATIVES_READ = 5

_WORD = re.compile(r"[^\W\d_]{2,}")


class NoticeKind(StrEnum):
    """What can be wrong; the values label metrics."""

    #: Active goals that nothing has happened to for a week.
    STAGNATION = "stagnation"
    #: Little of its energy is used, for a day of beats.
    HOARDING = "hoarding"
    #: Too many messages to its users in a day.
    REACH_OUT_SPAM = "reach_out_spam"
    #: The same topic, or the same story, beat after beat.
    LOOP = "loop"
    #: Maintenance is behind: what it sees of its memory may be old.
    WORKER_FAILURE = "worker_failure"
    #: The model declined to answer.
    REFUSALS = "refusals"
    #: The model's replies could not be read.
    INVALID_REPLIES = "invalid_replies"
    #: More has reached it than it takes in.
    PILE_UP = "pile_up"
    #: Steps that somebody took up and did not finish.
    STUCK_INTENTS = "stuck_intents"
    #: The day's budget runs low.
    BUDGET = "budget"


class Notice(BaseModel):
    """Something noticed about an agent, said to itself."""

    model_config = ConfigDict(frozen=True)

    kind: NoticeKind
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BeatGlance:
    """One of the latest beats, as far as failures show in it."""

    #: A `HeartbeatStatus`: done, failed or skipped.
    status: str
    mode: str = ""
    narrative: str = ""
    #: What it searched for or asked about.
    topics: tuple[str, ...] = ()
    #: Why it failed.
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pulse:
    """How an agent has been living; beats newest first, at most `BEATS_WATCHED`."""

    beats: Sequence[BeatGlance] = ()
    #: Energy at start and end of the latest beats that were lived, receipts left out; empty where something else is counted.
    energy: Sequence[tuple[float, float]] = ()
    stale_goals: Sequence[str] = ()
    reached_out: int = 0
    #: Replies in a row that could not be used.
    nops: int = 0
    waiting_percepts: int = 0
    pending_intents: int = 0
    stuck_intents: int = 0
    #: What of its memory waits for maintenance.
    stale_neighborhoods: int = 0
    unsummarized_episodes: int = 0
    level: Degradation = Degradation.NORMAL
    scarcest: Scarcest | None = None


def notices_of(pulse: Pulse) -> list[Notice]:
    """Return what is wrong, each kind at most once, in the order of `NoticeKind`."""
    found = {
        NoticeKind.STAGNATION: _stagnation(pulse),
        NoticeKind.HOARDING: _hoarding(pulse.energy),
        NoticeKind.REACH_OUT_SPAM: _spam(pulse.reached_out),
        NoticeKind.LOOP: _loop(pulse.beats),
        NoticeKind.WORKER_FAILURE: _workers(pulse),
        NoticeKind.REFUSALS: _refusals(pulse.beats),
        NoticeKind.INVALID_REPLIES: _invalid(pulse.nops),
        NoticeKind.PILE_UP: _pile_up(pulse),
        NoticeKind.STUCK_INTENTS: _stuck(pulse.stuck_intents),
        NoticeKind.BUDGET: _budget(pulse.level, pulse.scarcest),
    }
    return [Notice(kind=kind, text=text) for kind, text in found.items() if text]


def _stagnation(pulse: Pulse) -> str:
    if not pulse.stale_goals:
        return ""
    return (
        f"You have made no progress for a week on: {'; '.join(pulse.stale_goals)}. Look through all your goals"
        " (review_goals): make some progress now, or queue, put back or abandon what you do not mean to do."
    )


def _hoarding(energy: Sequence[tuple[float, float]]) -> str:
    """Of the energy that each beat brings, what it did not use; the store itself is capped, and says little."""
    unused = [max(0.0, REGENERATION - (start - end)) for start, end in energy[:BEATS_WATCHED]]
    if len(unused) < BEATS_WATCHED:
        return ""
    average = sum(unused) / len(unused)
    if average <= UNUSED_ENERGY:
        return ""
    return (
        f"In your last {len(unused)} heartbeats you left {average:.1f} of {REGENERATION:g} energy unused on average."
        " Reflect on what keeps you from acting, and on what would be worth it."
    )


def _spam(reached_out: int) -> str:
    if reached_out < REACHED_OUT_A_DAY:
        return ""
    return (
        f"You have written to your users {reached_out} times in the last 24 hours; fewer than {REACHED_OUT_A_DAY} is"
        " usual. Write again only if it cannot wait."
    )


def _loop(beats: Sequence[BeatGlance]) -> str:
    done = [beat for beat in beats if beat.status == "done"]
    topic, times = _recurring_topic(done)
    if times >= BEATS_OF_A_LOOP:
        about = f"You have turned to “{topic}” in {times} heartbeats in a row."
    elif (times := _alike(done)) >= BEATS_OF_A_LOOP:
        about = f"Your last {times} heartbeats were almost the same."
    else:
        return ""
    return f"{about} What else might deserve attention?"


def _recurring_topic(done: Sequence[BeatGlance]) -> tuple[str, int]:
    """Return the topic that the most beats in a row, up to the latest, have turned to, and in how many."""
    best, most = "", 0
    for topic in done[0].topics if done else ():
        wanted = words_of(topic)
        times = 0
        for beat in done:
            if not any(words_of(other) == wanted for other in beat.topics):
                break
            times += 1
        if wanted and times > most:
            best, most = topic, times
    return best, most


def _alike(done: Sequence[BeatGlance]) -> int:
    """Return how many of the latest beats in a row tell nearly the same as the one before each."""
    told = [words_of(beat.narrative) for beat in done if beat.narrative]
    count = 1 if told else 0
    for later, earlier in itertools.pairwise(told):
        if similarity(later, earlier) < SIMILAR_NARRATIVES:
            break
        count += 1
    return count


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, without figures: a beat's number makes no story new."""
    return frozenset(_WORD.findall(text.casefold()))


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of words that two texts have in common, 0 to 1 (Jaccard)."""
    together = one | other
    return len(one & other) / len(together) if together else 0.0


def _workers(pulse: Pulse) -> str:
    behind = []
    if pulse.stale_neighborhoods >= STALE_NEIGHBORHOODS:
        behind.append("what comes to mind with a memory may be out of date")
    if pulse.unsummarized_episodes >= UNSUMMARIZED_EPISODES:
        behind.append("episodes that have ended are not summed up yet")
    return f"The upkeep of memory is behind: {', and '.join(behind)}." if behind else ""


def _refusals(beats: Sequence[BeatGlance]) -> str:
    count = sum(beat.status == "failed" and beat.reason.startswith("ModelRefused") for beat in beats)
    if count < REFUSALS:
        return ""
    return f"In {count} of your last {len(beats)} heartbeats the model declined to answer. Turn to something else."


def _invalid(nops: int) -> str:
    if not nops:
        return ""
    times = "time" if nops == 1 else "times"
    return f"Your answer could not be used {nops} {times} in a row. Keep to the format: one JSON object."


def _pile_up(pulse: Pulse) -> str:
    waiting = []
    if pulse.waiting_percepts >= WAITING_PERCEPTS:
        waiting.append(f"{pulse.waiting_percepts} percepts")
    if pulse.pending_intents >= PENDING_INTENTS:
        waiting.append(f"{pulse.pending_intents} intents")
    return f"{' and '.join(waiting)} are waiting for you: deal with what matters first." if waiting else ""


def _stuck(count: int) -> str:
    if not count:
        return ""
    if count == 1:
        return "There is 1 step that was taken up and never finished."
    return f"There are {count} steps that were taken up and never finished."


def _budget(level: Degradation, nearest: Scarcest | None) -> str:
    if level is Degradation.NORMAL or nearest is None:
        return ""
    does = {
        Degradation.CONSERVATION: "you think once per heartbeat, and more cheaply",
        Degradation.DEGRADATION: "only what serves a goal or was asked for is done, as cheaply as possible",
        Degradation.END_TIMES: "only users who wait are answered",
        Degradation.HALT: "nothing is done before the next day",
    }[level]
    return f"Of {nearest.whose} {nearest.what} for today {nearest.left:.0%} is left: {does}."
