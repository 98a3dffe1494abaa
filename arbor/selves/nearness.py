"""The Jaro-Winkler similarity of short texts (seed 000, "Proposal Queue")."""

from __future__ import annotations

from rapidfuzz.distance import JaroWinkler

#: The similarity from which on two proposals are the same (seed 000).
DUPLICATE = 0.85
#: Characters of a text that are compared, so that long ones cost no more.
COMPARED = 400


def jaro_winkler(one: str, other: str) -> float:
    """Compute the similarity of two texts, 0 to 1, ignoring case and spaces; of long ones, the first 400 characters."""
    return JaroWinkler.similarity(_plain(one), _plain(other))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())[:COMPARED]
