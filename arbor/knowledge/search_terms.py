"""The term by which sources without vectors are searched."""

from __future__ import annotations

import re

from arbor.memory.text.lexical import STOP_WORDS

#: A term is a part of a message or an output: more words than these seldom stand side by side in one.
_MOST_WORDS = 3
TERM_LENGTH = 200
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,80})[\"”“»]")
_WORD = re.compile(r"[^\s,;:!?()\[\]{}\"“”„«»]+")


def search_term(text: str) -> str:
    """Return the part of a query that a message or an output contains literally; empty for a query without words.

    That is what stands in quotation marks; a short query whole; else its most telling word: one with a digit, a name, the longest.
    """
    if quoted := _QUOTED.search(text):
        return quoted[1].strip()
    words = [word.strip(".'’") for word in _WORD.findall(text)]
    words = [word for word in words if word]
    telling = [word for word in words if word.casefold() not in STOP_WORDS]
    if telling and len(words) <= _MOST_WORDS:
        return " ".join(words)[:TERM_LENGTH]
    if not telling:
        return ""
    # The first word of a sentence is written large anyway.
    names = {word for word in words[1:] if word[:1].isupper()}
    best: str = max(
        telling, key=lambda word: (any(map(str.isdigit, word)), word in names, len(word), -words.index(word))
    )
    return best[:TERM_LENGTH]
