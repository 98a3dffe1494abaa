"""Decide whether two texts say the same, so that one memory serves for both (`decay.effective_importance`: its gain)."""

from __future__ import annotations

import re
from functools import lru_cache

from arbor.memory.lexical import fold

#: Different wordings that a memory keeps beside its own.
WORDINGS_KEPT = 8

_FILLERS = "a an the please thanks actually basically oh ah um uh er hm hmm hey hi hello ok okay"
#: Words that do not change what a text says: articles, politeness, and sounds that fill a pause.
FILLERS = frozenset(_FILLERS.split())
#: "A few" are more than few.
_AFTER_A = frozenset({"few", "little"})

# A sign may change everything ("-5", "C#", "3 €", a thumb up or down, a question mark); what only parts a text does not.
_PARTS = re.compile(
    r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?"  # 12,000.50
    r"|\d+(?:\.\d+)+"  # 3.5, 1.2.3
    r"|[^\W_]+(?:'[^\W_]+)*"  # don't, café, gpt4
    r"|(?<![^\W_])[-\u2212](?=\.?\d)"  # minus
    r"|[^\w\s.,;:!'\"()\[\]{}`*\u2026\u2010-\u2015\u2018-\u201f\u00ab\u00bb-]"
)
_SHORT_FORMS = {
    "can't": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "cannot": ("can", "not"),
}


def says_the_same(first: str, second: str) -> bool:
    """Return whether two texts of nearly the same meaning make the same claims.

    Vectors are blind for what often matters most: "from Berlin to Rome" has that of "from Rome to Berlin", Monday's is
    near Friday's, and that of "is 4711" near "is not 4711". So the words and signs must be the same ones in the same
    order, uninflected, for "left" is not "leaves". Case, punctuation, FILLERS and short forms of "not" do not count.
    """
    return _claims(first) == _claims(second)


@lru_cache(maxsize=2_000)
def _claims(text: str) -> tuple[str, ...]:
    folded = fold(text)
    words: list[str] = []
    for part in _PARTS.findall(folded):
        words.extend(_spelt_out(part))
    followed = zip(words, [*words[1:], ""], strict=False)
    claims = [word for word, after in followed if word not in FILLERS or _matters(word, after)]
    # A text of nothing but fillers, or without any word, is compared as it is.
    return tuple(claims or words or [" ".join(folded.split())])


def _spelt_out(word: str) -> tuple[str, ...]:
    if word in _SHORT_FORMS:
        return _SHORT_FORMS[word]
    if word.endswith("n't") and word != "n't":
        return word.removesuffix("n't"), "not"
    return (word.replace(",", ""),)


def _matters(word: str, after: str) -> bool:
    """Return whether an article is more than that: at the end it is a name ("vitamin A")."""
    return word == "a" and (not after or after in _AFTER_A)
