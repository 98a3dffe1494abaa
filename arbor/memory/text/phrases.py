"""Lists of words and phrases, Arbor's or an operator's, and their search in a text in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import yaml

from arbor.errors import ConfigurationInvalid
from arbor.memory.text.lexical import fold, term_of

#: The marks that end a sentence, and those that end a clause.
SENTENCE_ENDS = frozenset(".!?")
CLAUSE_ENDS = SENTENCE_ENDS | frozenset(":;,—–")
_TOKENS = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[.!?:;,—–]")

#: The loader in C, where it is installed, is ten times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: The longest entry of a list, in characters, and the most entries of one list.
_MAX_ENTRY_LENGTH = 100
_MAX_ENTRIES = 5_000
#: Lists whose words match all of their inflections.
_STEMS = frozenset({"decision", "approval", "money", "action", "error"})


def tokens_of(folded: str) -> list[str]:
    """Return the words of a folded text, and the marks that end its clauses."""
    tokens: list[str] = _TOKENS.findall(folded)
    return tokens


def _words(text: str) -> list[str]:
    return [token for token in tokens_of(fold(text)) if token not in CLAUSE_ENDS]


class Phrases:
    """Words and phrases, indexed by their first words: a search costs one look-up for each word of a text."""

    def __init__(self, phrases: Iterable[str] = (), *, stems: bool = False) -> None:
        #: The phrases as written, folded.
        self.phrases = tuple(dict.fromkeys(" ".join(_words(phrase)) for phrase in phrases))
        self._tails: dict[str, list[tuple[str, ...]]] = {}
        for phrase in self.phrases:
            words = [term_of(word) if stems else word for word in phrase.split()]
            self._tails.setdefault(words[0], []).append(tuple(words[1:]))
        for tails in self._tails.values():
            tails.sort(key=len, reverse=True)
        #: The phrases of one word.
        self.words = frozenset(word for word, tails in self._tails.items() if () in tails)

    def may_be_in(self, words: Iterable[str]) -> bool:
        """Return whether a phrase begins with one of these words, a quick check before a search."""
        return not self._tails.keys().isdisjoint(words)

    def length_at(self, words: Sequence[str], position: int) -> int:
        """Return the length in words of the longest phrase at a position; 0 for none."""
        if position >= len(words):
            return 0
        for tail in self._tails.get(words[position], ()):
            if tuple(words[position + 1 : position + 1 + len(tail)]) == tail:
                return 1 + len(tail)
        return 0

    def first_in(self, words: Sequence[str], *, unless_after: frozenset[str]) -> slice | None:
        """Return the position of the first phrase among the words, or None.

        A phrase does not count when one of the two words before it is in `unless_after`.
        """
        if not self.may_be_in(words):
            return None
        for position, word in enumerate(words):
            if word not in self._tails or not (length := self.length_at(words, position)):
                continue
            if unless_after.isdisjoint(words[max(0, position - 2) : position]):
                return slice(position, position + length)
        return None

    def without(self, words: Sequence[str]) -> list[str]:
        """Return the words that belong to none of the phrases."""
        left, position = [], 0
        while position < len(words):
            length = self.length_at(words, position)
            if not length:
                left.append(words[position])
            position += length or 1
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
        """Return the given lists; a list that is not given is empty."""
        return cls(
            **{
                field.name: Phrases(lists.get(field.name, ()), stems=field.name in _STEMS)
                for field in fields(cls)
            }
        )

    def extended(self, other: WordLists) -> WordLists:
        """Return these lists with the entries of others added."""
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
    if len(words) > _MAX_ENTRIES:
        raise ConfigurationInvalid(
            f"{path}: {key} must have at most {_MAX_ENTRIES:,} entries, got {len(words):,}"
        )
    for number, word in enumerate(words, start=1):
        if not isinstance(word, str):
            raise ConfigurationInvalid(
                f"{path}: {key}, entry {number} must be a text, got {_kind(word)} (write it in quotes)"
            )
        if len(word) > _MAX_ENTRY_LENGTH or not _words(word):
            raise ConfigurationInvalid(
                f"{path}: {key}, entry {number} must have a word, and at most {_MAX_ENTRY_LENGTH} characters, got {word[:_MAX_ENTRY_LENGTH]!r}"
            )


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {value!r}"[:80]
