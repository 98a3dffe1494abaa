"""How alike two short texts are, letter by letter: Jaro's similarity as Winkler has it (seed 000, "Proposal Queue")."""

from __future__ import annotations

#: From here on two proposals are one (seed 000).
DUPLICATE = 0.85
#: What is compared of a text; ours, so that long ones cost no more.
COMPARED = 400
#: A common beginning counts, up to so many letters, each by so much (Winkler).
PREFIX = 4
PREFIX_WEIGHT = 0.1


def jaro_winkler(one: str, other: str) -> float:
    """Return how alike two texts are, 0 to 1, without regard to case and spaces; of long ones the first 400 letters."""
    a, b = _plain(one), _plain(other)
    if a == b:
        return 1.0
    jaro = _jaro(a, b)
    common = 0
    for left, right in zip(a[:PREFIX], b[:PREFIX], strict=False):
        if left != right:
            break
        common += 1
    return jaro + common * PREFIX_WEIGHT * (1 - jaro)


def _jaro(a: str, b: str) -> float:
    if not a or not b:
        return 0.0
    reach = max(max(len(a), len(b)) // 2 - 1, 0)
    taken = [False] * len(b)
    matched = []
    for at, letter in enumerate(a):
        for place in range(max(at - reach, 0), min(at + reach + 1, len(b))):
            if not taken[place] and b[place] == letter:
                taken[place] = True
                matched.append(letter)
                break
    if not matched:
        return 0.0
    others = (letter for place, letter in enumerate(b) if taken[place])
    swapped = sum(left != right for left, right in zip(matched, others, strict=True)) / 2
    count = len(matched)
    return (count / len(a) + count / len(b) + (count - swapped) / count) / 3


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())[:COMPARED]
