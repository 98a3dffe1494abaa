"""The term by which sources without vectors are searched."""

from __future__ import annotations

import re

from arbor.memory.text.lexical import STOP_WORDS

#: The most words of a query that is searched as a whole: more words seldom occur side by side in a message or an output.
_MAX_WORDS = 3
#: The most characters of a term.
TERM_LENGTH = 200
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,80})[\"”“»]")
#: Characters around a word that are no part of it.
_AROUND = ".'’"
_WORD = re.compile(r"[^\s,;:!?()\[\]{}\"“”„«»]+")


def search_term(text: str) -> str:
    """Return the part of a query that a message or an output contains literally; empty for a query of stop words alone.

    It is the text in quotation marks, or the whole of a short query, or its most distinctive word: a word with a digit, a name, the
    longest word.
    """
    if (quoted := _QUOTED.search(text)) and (term := quoted[1].strip()):
        return term
    found = [match for match in _WORD.finditer(text) if match[0].strip(_AROUND)]
    words = [match[0].strip(_AROUND) for match in found]
    distinctive = [word for word in words if word.casefold() not in STOP_WORDS]
    if distinctive and len(words) <= _MAX_WORDS:
        # With the marks between the words, as in "user:ada", which a text contains too.
        whole = text[found[0].start() : found[-1].end()].strip(_AROUND)
        return " ".join(whole.split())[:TERM_LENGTH]
    if not distinctive:
        return ""
    # The first word of a sentence is capitalized anyway.
    names = {word for word in words[1:] if word[:1].isupper()}
    best: str = max(
        distinctive,
        key=lambda word: (any(map(str.isdigit, word)), word in names, len(word), -words.index(word)),
    )
    return best[:TERM_LENGTH]
