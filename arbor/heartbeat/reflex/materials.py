"""Memories as materials of the reflex policy: their gists, and those that it has not thought about yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations

from arbor.contacts.values import Speaker
from arbor.heartbeat.focus import CONSOLIDATION_EVERY
from arbor.heartbeat.situation import MemoryView, Situation
from arbor.memory.text.lexical import STOP_WORDS, term_of
from arbor.memory.values import MemoryType
from arbor.quotations import quoted, shorten

EXCERPT_LENGTH = 120
#: Beginnings of the policy's own insights and summaries.
STAYS = "What stays with me is this"
SUMMARY = "About"
BACK = "Looking back"
NEEDED = "To be done with"
GATHERED = "These came to mind together"
_OWN = (STAYS, f"{SUMMARY} “", BACK, NEEDED, GATHERED, "Heartbeat ", "I wondered")

_WORD = re.compile(r"[^\W\d_]{5,}")
_SIGNIFICANT = re.compile(r"[^\W\d_]{3,}")
#: A capitalized word that does not begin a sentence.
_NAME = re.compile(r"(?<=[a-zß-ÿ0-9,;:] )[A-ZÀ-Þ][^\W\d_]{2,}")
_BETWEEN = re.compile(r"\W+")
#: The last quotation that begins in a text; ’ in a word is an apostrophe.
_INNERMOST = re.compile(r"(?:“([^“”‘]*)|‘((?:[^“”‘’]|’(?=\w))*))[^“‘]*\Z")
_ROTATED_PAIRS = 5
#: A word from this length on may be a subject of its own.
_LONG = 8


def excerpt(text: str, longest: int = EXCERPT_LENGTH) -> str:
    """Return a text on one line, clipped."""
    return shorten(" ".join(text.split()), longest)


def gist(view: MemoryView) -> str:
    """Return a memory on one line, or its innermost quotation, because reflections on reflections nest quotations."""
    quotation = None if view.role else _INNERMOST.search(view.content)
    inner = (quotation.group(1) or quotation.group(2) or "").strip() if quotation else ""
    return excerpt(inner or view.content)


def gist_with_speaker(view: MemoryView) -> str:
    """Return the gist with its speaker."""
    return f"{view.role} said {quoted(gist(view))}" if view.role else quoted(gist(view))


def first_hand_memories(situation: Situation) -> list[MemoryView]:
    """Return the distinct memories of others' utterances, else those not episodic, else all; never own answers."""
    views = [view for view in _distinct(situation) if view.role != Speaker.AGENT]
    utterances = [view for view in views if view.role]
    return utterances or [view for view in views if view.type is not MemoryType.EPISODIC] or views


def memories_without_thoughts(situation: Situation) -> list[MemoryView]:
    """Return the first-hand memories that no recent thought and no recalled insight of the agent quotes, best first."""
    thoughts = [_plain(thought.text) for thought in situation.working_memory.thoughts]
    own = {view.id: _plain(view.content) for view in _distinct(situation) if not view.role}
    found: dict[str, MemoryView] = {}
    for view in first_hand_memories(situation):
        text = _plain(gist(view))
        others = (content for other, content in own.items() if other != view.id)
        if text and not view.content.startswith(_OWN) and not _occurs(text, thoughts, others):
            found.setdefault(text, view)
    return list(found.values())


def procedure_for(title: str, situation: Situation) -> MemoryView | None:
    """Return the recalled procedure that shares at least half of the significant words of a goal's title, if any."""
    wanted = _stems(title)
    for view in situation.relevant:
        if (
            view.type is MemoryType.PROCEDURAL
            and wanted
            and 2 * len(wanted & _stems(view.content)) >= len(wanted)
        ):
            return view
    return None


def _stems(text: str) -> set[str]:
    return {term_of(word) for word in _SIGNIFICANT.findall(text.casefold()) if word not in STOP_WORDS}


def most_similar_pair(situation: Situation) -> tuple[MemoryView, MemoryView, list[str]] | None:
    """Return two memories that share many words, and these words; None without a pair.

    The best pairs rotate between consolidations, because the first pair is connected already.
    """
    best = pairs_of(first_hand_memories(situation))[:_ROTATED_PAIRS]
    return best[situation.beat_number // CONSOLIDATION_EVERY % len(best)] if best else None


def pairs_of(views: Iterable[MemoryView]) -> list[tuple[MemoryView, MemoryView, list[str]]]:
    """Return the pairs of memories with their shared words, those with most words first."""
    listed = list(views)
    words = {view.id: set(_WORD.findall(view.content.lower())) - STOP_WORDS for view in listed}
    pairs = [
        (first, second, sorted(words[first.id] & words[second.id], key=lambda word: (-len(word), word)))
        for first, second in combinations(listed, 2)
        # Equal gists are the same memory.
        if gist(first).casefold() != gist(second).casefold()
    ]
    return sorted(pairs, key=lambda pair: -len(pair[2]))


def lead_of(texts: Iterable[str], *, avoid: Situation) -> str:
    """Return a subject to look for next: a name in the texts, or else a long word; empty without a new one."""
    known = set(_subjects_of(avoid))
    listed = list(texts)
    names = (name for text in listed for name in _NAME.findall(text))
    words = (word for text in listed for word in sorted(_WORD.findall(text), key=len, reverse=True))
    long = (word.lower() for word in words if len(word) >= _LONG and word.lower() not in STOP_WORDS)
    return next((lead for lead in (*names, *long) if _plain(lead) not in known), "")


def _subjects_of(situation: Situation) -> Iterator[str]:
    """Yield what the agent looked for lately, or already wonders about: quotations in its thoughts and questions."""
    memory = situation.working_memory
    for text in (*(thought.text for thought in memory.thoughts), *memory.curiosity):
        yield from (_plain(part) for part in re.findall(r"[“‘]([^“”‘’]{1,40})[”’]", text))
    for view in _distinct(situation):
        if view.content.startswith(SUMMARY):
            yield _plain(view.content.partition("”")[0].removeprefix(SUMMARY))


def _distinct(situation: Situation) -> list[MemoryView]:
    return list({view.id: view for view in (*situation.relevant, *situation.recent)}.values())


def _occurs(text: str, *among: Iterable[str]) -> bool:
    return any(text in other for texts in among for other in texts)


def _plain(text: str) -> str:
    """Return the words alone: quotation marks change as quotations nest."""
    return _BETWEEN.sub(" ", text).strip().casefold()
