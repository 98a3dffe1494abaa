"""Gists of memories and pairs of similar ones, for the reflex policy."""

from __future__ import annotations

import re
from itertools import combinations

from arbor.contacts.values import Speaker
from arbor.heartbeat.modes import CONSOLIDATION_EVERY
from arbor.heartbeat.reflex_draft import excerpt
from arbor.heartbeat.situation import MemoryView, Situation
from arbor.memory.values import MemoryType

_WORD = re.compile(r"[^\W\d_]{5,}")
#: The last quotation that begins in a text; ’ in a word is an apostrophe.
_INNERMOST = re.compile(r"(?:“([^“”‘]*)|‘((?:[^“”‘’]|’(?=\w))*))[^“‘]*\Z")
_PAIRS_IN_TURN = 5


def gist(view: MemoryView) -> str:
    """Return a memory on one line, or its innermost quotation: reflections on reflections would nest quotations."""
    found = None if view.role else _INNERMOST.search(view.content)
    inner = (found.group(1) or found.group(2) or "").strip() if found else ""
    return excerpt(inner or view.content)


def first_hand(situation: Situation) -> list[MemoryView]:
    """Return the distinct memories of what others said, else those that are not episodic, else all; no own answers."""
    distinct = {view.id: view for view in (*situation.relevant, *situation.recent)}
    views = [view for view in distinct.values() if view.role != Speaker.AGENT]
    spoken = [view for view in views if view.role]
    return spoken or [view for view in views if view.type is not MemoryType.EPISODIC] or views


def closest(situation: Situation) -> tuple[MemoryView, MemoryView, list[str]] | None:
    """Return two memories that share many words, and these words; None without a pair.

    The best pairs rotate between consolidations, for the first is connected already.
    """
    views = first_hand(situation)
    words = {view.id: set(_WORD.findall(view.content.lower())) for view in views}
    pairs = [
        (first, second, sorted(words[first.id] & words[second.id], key=lambda word: (-len(word), word)))
        for first, second in combinations(views, 2)
        # Equal gists are the same memory.
        if gist(first).casefold() != gist(second).casefold()
    ]
    if not pairs:
        return None
    best = sorted(pairs, key=lambda pair: -len(pair[2]))[:_PAIRS_IN_TURN]
    return best[situation.beat_number // CONSOLIDATION_EVERY % len(best)]
