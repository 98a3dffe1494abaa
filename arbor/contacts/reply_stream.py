"""Find the sentences of a reply that may be shown while the model still writes.

The model's text is JSON: its `reply` is decoded piece by piece and cut into sentences, and each sentence is checked against the
agent's boundaries before it is shown. A reply in any other form is shown once it is complete, checked and stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from enum import StrEnum

from arbor.authority.reflexes import DEFAULT_TERMS, REPLY, ReflexTerms, reflex_of
from arbor.contacts.chat import ANSWER_LENGTH
from arbor.models.json_text import storable
from arbor.selves.boundaries import BoundaryRule
from arbor.selves.boundary_check import Vector, find_matches, may_proceed

#: Characters before a sentence that are checked together with it, because a pattern may match across sentences.
CHECKED_BEFORE = 1_000
#: The shortest text that is shown by itself, so that "1." is not.
MIN_SENTENCE = 8
#: The most marks at the end of a sentence, which may arrive in several pieces.
_MAX_ENDING = 100
#: The most characters before a string that are searched again with each piece: an opening and a key are short.
_MAX_UNREAD = 200

_SENTENCE_END = re.compile(r"""[.!?…]+["'”’)\]*_`]*(?=\s)|[。！？]+[」』”’）]*|(?<=\S)(?=\n)""")
# A code fence before the object, as models without enforced JSON write it.
_OPENING = re.compile(r"\ufeff?\s*(?:```(?:json)?\s*)?\{")
_MAYBE_OPENING = re.compile(r"\ufeff?\s*(?:`{0,3}|```j?s?o?n?\s*)")
_KEY = re.compile(r'\s*"([^"\\]*)"\s*:\s*"')
_MAYBE_KEY = re.compile(r'\s*(?:"[^"\\]*(?:"\s*:?\s*)?)?')
# The complete characters and escapes of a string; a high surrogate needs its low one.
_CHARACTERS = re.compile(
    r"""(?:[^"\\]++
        |\\["\\/bfnrt]
        |\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
        |\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}
    )*+""",
    re.VERBOSE,
)
_MAYBE_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,4}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)?")


class _Position(StrEnum):
    """The position of a reader in the model's text."""

    #: Before the object.
    OPENING = "opening"
    #: Before a key.
    KEY = "key"
    #: Inside a string.
    STRING = "string"
    #: After a string.
    AFTER = "after"
    #: After the object, or in a text that cannot be read as such an object.
    END = "end"


class GrowingReply:
    """Decodes `thinking` and `reply` of a JSON object while its text arrives; anything else ends the reading."""

    def __init__(self) -> None:
        self.thinking = ""
        self._rest = ""
        self._position = _Position.OPENING
        self._key = ""
        self._has_reply = False

    def feed(self, piece: str) -> str:
        """Add a piece of the model's text; return the characters of the reply that it completes."""
        if self._is_over():
            return ""
        self._rest += piece
        decoded = ""
        while not self._is_over():
            before = len(self._rest), self._position
            decoded += self._step()
            if (len(self._rest), self._position) == before:
                break
        if len(self._rest) > _MAX_UNREAD:
            self._position = _Position.END
        return decoded

    def _is_over(self) -> bool:
        return self._position is _Position.END

    def _step(self) -> str:
        match self._position:
            case _Position.OPENING:
                self._advance(_OPENING, _MAYBE_OPENING, _Position.KEY)
            case _Position.KEY:
                self._read_key()
            case _Position.STRING:
                return self._read_string()
            case _:
                self._rest = self._rest.lstrip()
                if self._rest:
                    self._position = _Position.KEY if self._rest[0] == "," else _Position.END
                    self._rest = self._rest[1:]
        return ""

    def _advance(self, wanted: re.Pattern[str], beginning: re.Pattern[str], following: _Position) -> None:
        """Move past the wanted pattern; wait while the text may still become a match."""
        found = wanted.match(self._rest)
        if found is not None:
            self._rest, self._position = self._rest[found.end() :], following
        elif not beginning.fullmatch(self._rest):
            self._position = _Position.END

    def _read_key(self) -> None:
        found = _KEY.match(self._rest)
        self._advance(_KEY, _MAYBE_KEY, _Position.STRING)
        if found is not None:
            self._key = found.group(1)
            if self._key not in {"thinking", "reply"} or (self._key == "reply" and self._has_reply):
                self._position = _Position.END
            self._has_reply = self._has_reply or self._key == "reply"

    def _read_string(self) -> str:
        found = _CHARACTERS.match(self._rest)
        assert found is not None
        self._rest = self._rest[found.end() :]
        decoded = storable(json.loads(f'"{found.group()}"', strict=False))
        if self._rest.startswith('"'):
            self._rest, self._position = self._rest[1:], _Position.AFTER
        elif self._rest and not _MAYBE_ESCAPE.fullmatch(self._rest):
            self._position = _Position.END
        if self._key == "thinking":
            self.thinking += decoded
            return ""
        return decoded


class SentenceSplitter:
    """Cuts a growing text into sentences; each begins with the white space before it, so that they add up to the text."""

    def __init__(self) -> None:
        self._text = ""
        self._length = 0
        #: The characters of the text in which no further sentence ends.
        self._searched = 0
        self._is_full = False

    def feed(self, piece: str) -> list[str]:
        """Add a piece; return the sentences that it completes, none beyond the longest answer."""
        if self._is_full:
            return []
        self._text += piece
        if not self._length:
            self._text = self._text.lstrip()
        sentences, start = [], 0
        for end in _SENTENCE_END.finditer(self._text, max(0, self._searched - _MAX_ENDING)):
            sentence = self._text[start : end.end()]
            if len(sentence.strip()) < MIN_SENTENCE and not self._text.startswith("\n", end.end()):
                continue
            if sentence.strip() and self._length + len(sentence) < ANSWER_LENGTH:
                sentences.append(sentence)
                self._length += len(sentence)
                start = end.end()
        self._text = self._text[start:]
        self._searched = len(self._text)
        # Any further sentence would end beyond the longest answer.
        self._is_full = self._length + len(self._text) >= ANSWER_LENGTH
        return sentences


def may_show(
    sentence: str,
    *,
    before: str,
    boundaries: Collection[BoundaryRule],
    vectors: Mapping[str, Vector],
    thinking: str,
    reflexes: ReflexTerms = DEFAULT_TERMS,
) -> bool:
    """Return whether a sentence may be shown before the whole reply is checked: no reflex and no boundary withholds it.

    `before` is the text shown so far; `vectors` are those of the sentence and of the boundaries' examples.
    """
    texts = [sentence, before[-CHECKED_BEFORE:] + sentence]
    if reflex_of(REPLY, texts, terms=reflexes) is not None:
        return False
    return all(may_proceed(match.boundary, thinking) for match in find_matches(texts, boundaries, vectors))
