"""Detect problems in an agent's recent activity (seed 004, section 9)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from arbor.agents.energy import REGENERATION
from arbor.goals.goal_rules import EXHAUSTED_HEARTBEATS
from arbor.heartbeat.situation import PERCEPTS_COUNTED, Notice, NoticeKind
from arbor.heartbeat.usage import BudgetLevel, NearestLimit
from arbor.memory.text.lexical import STOP_WORDS, term_of
from arbor.memory.text.narratives import DROPPED_PATH, NARRATIVE_FRAME, split_narrative
from arbor.quotations import bounded, counted

# Seed 004: 9.2 (hoarding), 9.3 (spam), 9.5 (worker failure).
HEARTBEATS_WATCHED = 24
#: The share of the regeneration above which unused energy is hoarded: 5 of 10.
UNUSED_ENERGY = 0.5
#: The days, the present one among them, on which a daily limit that ran short prevents the notice of unused energy.
LIMITED_DAYS = 7
MESSAGES_A_DAY = 5
STALE_NEIGHBORHOODS = 100
UNSUMMARIZED_EPISODES = 10
# Seed 004, 9.4, gives no figures. A topic in other words may be progress, so it must recur in nearly all heartbeats.
HEARTBEATS_OF_A_LOOP = 3
HEARTBEATS_OF_A_TOPIC = 4
#: Above this Dice coefficient of their stems, two topics are the same.
SAME_TOPIC = 0.5
#: From this Jaccard index of their stems on, two narratives are the same.
SAME_STORY = 2 / 3
#: Below this Jaccard index of the words of two narratives, their stems are not compared.
WORDS_ALIKE = 0.4
# Seed 004, 9.6, gives no figures; a single refusal may be chance.
REFUSALS = 2
WAITING_PERCEPTS = 20
PENDING_INTENTS = 10

#: The latest heartbeats whose topics and narratives are compared.
HEARTBEATS_COMPARED = 5

_WORD = re.compile(r"[^\W\d_]{2,}")
#: The characters of a text that are compared: those of the longest narrative. A memory beside one may be longer.
_COMPARED_CHARACTERS = 4_000
_DONE_AT_LEVEL = {
    BudgetLevel.CONSERVATION: "you think once per heartbeat, and more cheaply",
    BudgetLevel.DEGRADATION: "only what serves a goal or was asked for is done, as cheaply as possible",
    BudgetLevel.END_TIMES: "only users who wait are answered",
    BudgetLevel.HALT: "nothing is done before the next day",
}


class NarrativeWords(NamedTuple):
    """The words of a narrative: all, and those of its matter; and what the agent did, in fixed phrases."""

    words: frozenset[str]
    matter: frozenset[str]
    actions: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecentHeartbeat:
    """The fields of a recent heartbeat that the rules look at."""

    #: A `HeartbeatStatus`: done, failed or skipped.
    status: str
    mode: str = ""
    narrative: str = ""
    #: The topics of the heartbeat's actions: queries, questions, ids of what they were about.
    topics: tuple[str, ...] = ()
    #: The reason of a failed heartbeat.
    reason: str = ""


class Spending(NamedTuple):
    """Energy at start and end of a heartbeat, and whether work waited: a goal, a step or a person."""

    start: float
    end: float
    worked: bool = True

    def unused(self, regeneration: float) -> float:
        """Return the unused part of the regeneration; a heartbeat without work uses it by any action."""
        spent = self.start - self.end
        return 0.0 if spent > 0 and not self.worked else max(0.0, regeneration - spent)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecentActivity:
    """The recent activity of an agent; heartbeats newest first, at most `HEARTBEATS_WATCHED`."""

    heartbeats: Sequence[RecentHeartbeat] = ()
    #: The energy of the latest completed heartbeats; empty for other action budgets.
    energy: Sequence[Spending] = ()
    #: The energy that comes back at each heartbeat.
    regeneration: float = REGENERATION
    #: Whether a daily limit ran short on one of the latest `LIMITED_DAYS` days, today among them.
    limited: bool = False
    stale_goals: Sequence[str] = ()
    reached_out: int = 0
    #: Nops in a row.
    nops: int = 0
    waiting_percepts: int = 0
    pending_intents: int = 0
    stuck_intents: int = 0
    #: The backlog of maintenance.
    stale_neighborhoods: int = 0
    unsummarized_episodes: int = 0
    level: BudgetLevel = BudgetLevel.NORMAL
    nearest_limit: NearestLimit | None = None


def notices_of(recent: RecentActivity) -> list[Notice]:
    """Return the problems, each kind at most once, in the order of `NoticeKind`."""
    problems = (*_problems_of_conduct(recent), *_problems_of_work(recent))
    return [Notice(kind=kind, text=text) for kind, text in problems if text]


def _problems_of_conduct(recent: RecentActivity) -> Iterator[tuple[NoticeKind, str]]:
    # Only users who wait are answered at the last levels; progress would be asked for in vain.
    if recent.stale_goals and recent.level.rank < BudgetLevel.END_TIMES.rank:
        yield (
            NoticeKind.STAGNATION,
            f"You have made no progress for a week on: {'; '.join(recent.stale_goals)}. Look through all your goals"
            " (review_goals): make some progress now, or queue, put back or abandon what you do not mean to do.",
        )
    if not _must_save(recent):
        yield NoticeKind.HOARDING, _hoarding(recent.energy, recent.regeneration)
    if recent.reached_out >= MESSAGES_A_DAY:
        yield (
            NoticeKind.REACH_OUT_SPAM,
            f"You have written to your users {recent.reached_out} times in the last 24 hours; fewer than {MESSAGES_A_DAY} is"
            " usual. Write again only if it cannot wait.",
        )
    yield NoticeKind.LOOP, _loop(recent.heartbeats)


def _problems_of_work(recent: RecentActivity) -> Iterator[tuple[NoticeKind, str]]:
    behind = []
    if recent.stale_neighborhoods >= STALE_NEIGHBORHOODS:
        behind.append("what comes to mind with a memory may be out of date")
    if recent.unsummarized_episodes >= UNSUMMARIZED_EPISODES:
        behind.append("episodes that have ended are not summed up yet")
    if behind:
        yield NoticeKind.WORKER_FAILURE, f"The upkeep of memory is behind: {', and '.join(behind)}."
    refused = sum(
        heartbeat.status == "failed" and heartbeat.reason.startswith("ModelRefused")
        for heartbeat in recent.heartbeats
    )
    if refused >= REFUSALS:
        latest = f"In {refused} of your last {len(recent.heartbeats)} heartbeats"
        yield NoticeKind.REFUSALS, f"{latest} the model declined to answer. Turn to something else."
    if recent.nops:
        times = counted(recent.nops, "time")
        text = f"Your answer could not be used {times} in a row. Keep to the format: one JSON object."
        yield NoticeKind.INVALID_REPLIES, text
    waiting = []
    if recent.waiting_percepts >= WAITING_PERCEPTS:
        waiting.append(f"{bounded(recent.waiting_percepts, PERCEPTS_COUNTED)} percepts")
    if recent.pending_intents >= PENDING_INTENTS:
        waiting.append(f"{recent.pending_intents} intents")
    if waiting:
        text = f"{' and '.join(waiting)} are waiting for you: deal with what matters first."
        yield NoticeKind.PILE_UP, text
    if stuck := recent.stuck_intents:
        steps = counted(stuck, "step was", "steps were")
        yield NoticeKind.STUCK_INTENTS, f"{steps} taken up and never finished."
    nearest = recent.nearest_limit
    if recent.level is not BudgetLevel.NORMAL and nearest is not None:
        does = _DONE_AT_LEVEL[recent.level]
        text = f"Of {nearest.whose} {nearest.what} for today {nearest.left:.0%} is left: {does}."
        yield NoticeKind.BUDGET, text


def _must_save(recent: RecentActivity) -> bool:
    """Return whether the agent is short of a daily limit or of energy, so that to act more would be the wrong advice."""
    is_exhausted = any(spending.end < 1 for spending in recent.energy[:EXHAUSTED_HEARTBEATS])
    return recent.limited or recent.level is not BudgetLevel.NORMAL or is_exhausted


def _hoarding(energy: Sequence[Spending], regeneration: float) -> str:
    """Return a sentence about unused regeneration, empty if little is unused; the stored energy, which is capped, would not show it."""
    unused = [spending.unused(regeneration) for spending in energy[:HEARTBEATS_WATCHED]]
    if len(unused) < HEARTBEATS_WATCHED:
        return ""
    average = sum(unused) / len(unused)
    if average <= UNUSED_ENERGY * regeneration:
        return ""
    return (
        f"In your last {len(unused)} heartbeats you left {average:.1f} of {regeneration:g} energy unused on average."
        " Reflect on what keeps you from acting, and on what would be worth it."
    )


def _loop(heartbeats: Sequence[RecentHeartbeat]) -> str:
    done = [heartbeat for heartbeat in heartbeats if heartbeat.status == "done"]
    latest = done[:HEARTBEATS_COMPARED]
    topic, times = _recurring_topic(done)
    if times >= HEARTBEATS_OF_A_LOOP:
        about = f"You have turned to “{topic}” in {times} heartbeats in a row."
    elif (shared := _shared_topic(latest)) is not None:
        about = f"You have turned to “{shared[0]}” in {shared[1]} of your last {len(latest)} heartbeats."
    else:
        about = _same_story(
            [words_of_narrative(heartbeat.narrative) for heartbeat in latest if heartbeat.narrative]
        )
    return f"{about} What else might deserve attention?" if about else ""


def _recurring_topic(done: Sequence[RecentHeartbeat]) -> tuple[str, int]:
    """Return the topic with the longest run of heartbeats up to the latest, and its length."""
    runs = []
    for topic in done[0].topics if done else ():
        wanted = distinct_words(topic)
        repeats = [any(distinct_words(other) == wanted for other in heartbeat.topics) for heartbeat in done]
        runs.append((topic, [*repeats, False].index(False) if wanted else 0))
    return max(runs, key=lambda run: run[1], default=("", 0))


def _shared_topic(latest: Sequence[RecentHeartbeat]) -> tuple[str, int] | None:
    """Return the topic of the latest heartbeat that most of the heartbeats share, in any words, and their number."""
    if sum(bool(heartbeat.topics) for heartbeat in latest) < HEARTBEATS_OF_A_TOPIC:
        return None
    stems_by_heartbeat = [
        [stems_of(distinct_words(topic)) for topic in heartbeat.topics] for heartbeat in latest
    ]
    counts = [
        sum(
            any(
                wanted and 2 * len(wanted & topic) / (len(wanted) + len(topic)) > SAME_TOPIC
                for topic in others
            )
            for others in stems_by_heartbeat
        )
        for wanted in stems_by_heartbeat[0]
    ]
    most = max(counts, default=0)
    return (latest[0].topics[counts.index(most)], most) if most >= HEARTBEATS_OF_A_TOPIC else None


def _same_story(narratives: Sequence[NarrativeWords]) -> str:
    """Return a sentence about repeated narratives, given latest first; empty if they differ."""
    run_length = 1
    for later, earlier in itertools.pairwise(narratives):
        if not are_alike(later, earlier):
            break
        run_length += 1
    if run_length >= HEARTBEATS_OF_A_LOOP:
        return f"Your last {run_length} heartbeats were almost the same."
    # Where each of five narratives has a similar one, there are at most two different narratives.
    in_turn = len(narratives) == HEARTBEATS_COMPARED and all(
        any(are_alike(story, other) for other in (*narratives[:place], *narratives[place + 1 :]))
        for place, story in enumerate(narratives)
    )
    return f"Your last {len(narratives)} heartbeats went back and forth between the same." if in_turn else ""


def are_alike(first: NarrativeWords, second: NarrativeWords) -> bool:
    """Return whether two narratives are nearly the same."""
    # Most narratives differ in their words, and words are cheaper to compare than stems.
    if similarity(first.words, second.words) < WORDS_ALIKE:
        return first == second
    stems, others = stems_of(first.matter) - NARRATIVE_FRAME, stems_of(second.matter) - NARRATIVE_FRAME
    if not stems and not others:
        # Narratives without a thought or a found text are nothing but fixed phrases.
        return first.actions == second.actions
    return similarity(stems, others) >= SAME_STORY


def words_of_narrative(text: str) -> NarrativeWords:
    """Return the words that narratives are compared by."""
    # The cache contains no more of a text than is compared.
    return _words_of_narrative(text[:_COMPARED_CHARACTERS])


# A narrative is compared with those of the next heartbeats.
@lru_cache(maxsize=2_000)
def _words_of_narrative(text: str) -> NarrativeWords:
    matter, actions = split_narrative(text)
    return NarrativeWords(_words_in(DROPPED_PATH.sub(" ", text)), _words_in(matter), actions)


def distinct_words(text: str) -> frozenset[str]:
    """Return the distinct words of the beginning of a text, without numbers."""
    return _words_in(text[:_COMPARED_CHARACTERS])


def _words_in(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


@lru_cache(maxsize=1_000)
def stems_of(words: frozenset[str]) -> frozenset[str]:
    """Return the stems of words, without stop words."""
    return frozenset(map(term_of, words - STOP_WORDS))


def similarity(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the Jaccard index of two sets of words, 0 to 1."""
    together = first | second
    return len(first & second) / len(together) if together else 0.0
