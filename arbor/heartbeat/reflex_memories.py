"""What memories say to the reflex policy: their gist, and which two have most in common."""

from __future__ import annotations

import re
from itertools import combinations

from arbor.contacts.values import Speaker
from arbor.heartbeat.modes import CONSOLIDATION_EVERY
from arbor.heartbeat.reflex_draft import excerpt
from arbor.heartbeat.situation import MemoryView, Situation
from arbor.memory.values import MemoryType

_WORD = re.compile(r"[^\W\d_]{5,}")
#: The last quotation that begins in a text, whichever its marks; ’ in a word is an apostrophe.
_INNERMOST = re.compile(r"(?:“([^“”‘]*)|‘((?:[^“”‘’]|’(?=\w))*))[^“‘]*\Z")
_PAIRS_IN_TURN = 5


def gist(view: MemoryView) -> str:
    """Return what a memory is about on one line: of the agent's own words, what it quoted innermost.

    Without this, a reflection on a reflection would quote a quotation of a quotation.
    """
    found = None if view.role else _INNERMOST.search(view.content)
    inner = (found.group(1) or found.group(2) or "").strip() if found else ""
    return excerpt(inner or view.content)


def first_hand(situation: Situation) -> list[MemoryView]:
    """Return the memories in sight, each once: what somebody said, or what the agent holds to be so, or all.

    What the agent itself answered is none of them: it follows from the others.
    """
    seen = {view.id: view for view in (*situation.relevant, *situation.recent)}
    views = [view for view in seen.values() if view.role != Speaker.AGENT]
    said = [view for view in views if view.role]
    return said or [view for view in views if view.type is not MemoryType.EPISODIC] or views


def closest(situation: Situation) -> tuple[MemoryView, MemoryView, list[str]] | None:
    """Return two memories that share many words, and those words; None if there are not two in sight.

    The pairs take turns from one consolidation to the next, for the best one is tied already.
    """
    views = first_hand(situation)
    words = {view.id: set(_WORD.findall(view.content.lower())) for view in views}
    pairs = [
        (a, b, sorted(words[a.id] & words[b.id], key=lambda word: (-len(word), word)))
        for a, b in combinations(views, 2)
        # What reads the same is no two things.
        if gist(a).casefold() != gist(b).casefold()
    ]
    if not pairs:
        return None
    best = sorted(pairs, key=lambda pair: -len(pair[2]))[:_PAIRS_IN_TURN]
    return best[situation.beat_number // CONSOLIDATION_EVERY % len(best)]
