"""Find words and phrases of lists in a text in one pass; the built-in lists, and those an operator adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import yaml

from arbor.errors import ConfigurationInvalid
from arbor.memory.lexical import fold, term_of

#: Where a clause ends; a sentence ends at the first three.
SENTENCE_ENDS = frozenset(".!?")
CLAUSE_ENDS = SENTENCE_ENDS | frozenset(":;,—–")
_TOKENS = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[.!?:;,—–]")

#: The one in C, where there is one: ten times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Longest word or phrase of a list, in characters, and the most entries of one list.
_LONGEST = 100
_MOST = 5_000
#: Lists whose words match all of their inflections.
_STEMS = frozenset({"decision", "approval", "money", "action", "error"})


def tokens_of(folded: str) -> list[str]:
    """Return the words of a folded text, and the marks that end its clauses."""
    tokens: list[str] = _TOKENS.findall(folded)
    return tokens


def _words(text: str) -> list[str]:
    return [token for token in tokens_of(fold(text)) if token not in CLAUSE_ENDS]


class Phrases:
    """Words and phrases, by their first words: looking for all of them costs one look-up for each word of a text."""

    def __init__(self, phrases: Iterable[str] = (), *, stems: bool = False) -> None:
        #: As they were written, folded.
        self.phrases = tuple(dict.fromkeys(" ".join(_words(phrase)) for phrase in phrases))
        self._tails: dict[str, list[tuple[str, ...]]] = {}
        for phrase in self.phrases:
            words = [term_of(word) if stems else word for word in phrase.split()]
            self._tails.setdefault(words[0], []).append(tuple(words[1:]))
        for tails in self._tails.values():
            tails.sort(key=len, reverse=True)
        #: Those of one word.
        self.words = frozenset(word for word, tails in self._tails.items() if () in tails)

    def may_be_in(self, words: Iterable[str]) -> bool:
        """Return whether a phrase begins with one of these words: what is looked at first, and rarely so."""
        return not self._tails.keys().isdisjoint(words)

    def length_at(self, words: Sequence[str], place: int) -> int:
        """Return how many words the longest phrase that begins at this place has, 0 if none begins there."""
        if place >= len(words):
            return 0
        for tail in self._tails.get(words[place], ()):
            if tuple(words[place + 1 : place + 1 + len(tail)]) == tail:
                return 1 + len(tail)
        return 0

    def first_in(self, words: Sequence[str], *, unless_after: frozenset[str] = frozenset()) -> slice | None:
        """Return the place of the first phrase among the words, None if there is none.

        One does not count when one of the two words before it is in `unless_after`.
        """
        if not self.may_be_in(words):
            return None
        for place, word in enumerate(words):
            if word not in self._tails or not (length := self.length_at(words, place)):
                continue
            if unless_after.isdisjoint(words[max(0, place - 2) : place]):
                return slice(place, place + length)
        return None

    def without(self, words: Sequence[str]) -> list[str]:
        """Return the words that belong to none of the phrases."""
        left, place = [], 0
        while place < len(words):
            length = self.length_at(words, place)
            if not length:
                left.append(words[place])
            place += length or 1
        return left


@dataclass(frozen=True, kw_only=True)
class WordLists:
    """The word lists of the appraisal; `importance_words.yaml` describes each."""

    remember: Phrases
    requests: Phrases
    reminiscences: Phrases
    decision: Phrases
    approval: Phrases
    money: Phrases
    money_units: Phrases
    action: Phrases
    error: Phrases
    denials: Phrases
    small_talk: Phrases
    greetings: Phrases
    fillers: Phrases

    @classmethod
    def of(cls, lists: Mapping[str, Sequence[str]]) -> Self:
        """Return the lists of these names; those that are not named are empty."""
        return cls(
            **{
                column.name: Phrases(lists.get(column.name, ()), stems=column.name in _STEMS)
                for column in fields(cls)
            }
        )

    def extended(self, other: WordLists) -> WordLists:
        """Return these lists and what another one adds to them."""
        return WordLists.of(
            {
                field.name: (*getattr(self, field.name).phrases, *getattr(other, field.name).phrases)
                for field in fields(self)
            }
        )


def read_word_lists(path: Path) -> WordLists:
    """Read lists from a YAML or JSON file: an object of lists of texts, by the names of WordLists.

    Raises ConfigurationInvalid, which names the file and the key.
    """
    try:
        content: Any = yaml.load(path.read_text(encoding="utf-8"), _LOADER)  # noqa: S506 (a safe one)
    except OSError as error:
        raise ConfigurationInvalid(f"the word lists {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationInvalid(f"the word lists {path} are neither YAML nor JSON: {reason}") from error
    if not isinstance(content, dict):
        raise ConfigurationInvalid(f"the word lists {path} must be lists by name, got {_kind(content)}")
    known = [field.name for field in fields(WordLists)]
    for key, words in content.items():
        if key not in known:
            raise ConfigurationInvalid(
                f"the word lists {path} have no list {key!r}; there are: {', '.join(known)}"
            )
        _check_list(path, key, words)
    return WordLists.of(content)


def _check_list(path: Path, key: str, words: Any) -> None:
    if not isinstance(words, list):
        raise ConfigurationInvalid(f"{path}: {key} must be a list of words and phrases, got {_kind(words)}")
    if len(words) > _MOST:
        raise ConfigurationInvalid(f"{path}: {key} must have at most {_MOST:,} entries, got {len(words):,}")
    for number, word in enumerate(words, start=1):
        if not isinstance(word, str):
            raise ConfigurationInvalid(
                f"{path}: {key}, entry {number} must be a text, got {_kind(word)} (write it in quotes)"
            )
        if len(word) > _LONGEST or not _words(word):
            raise ConfigurationInvalid(
                f"{path}: {key}, entry {number} must have a word, and at most {_LONGEST} characters, got {word[:_LONGEST]!r}"
            )


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {value!r}"[:80]
