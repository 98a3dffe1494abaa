"""How alike two short texts are, letter by letter: Jaro's similarity as Winkler has it (seed 000, "Proposal Queue")."""

from __future__ import annotations

from rapidfuzz.distance import JaroWinkler

#: From here on two proposals are one (seed 000).
DUPLICATE = 0.85
#: What is compared of a text; ours, so that long ones cost no more.
COMPARED = 400


def jaro_winkler(one: str, other: str) -> float:
    """Return how alike two texts are, 0 to 1, without regard to case and spaces; of long ones the first 400 letters."""
    return JaroWinkler.similarity(_plain(one), _plain(other))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())[:COMPARED]
