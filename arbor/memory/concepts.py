"""Concepts: the names of ideas, their keys, and the limits of the hierarchy."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Mapping

from arbor.errors import Invalid
from arbor.memory.content import check_text

#: The longest name and the longest key of a concept, in characters.
NAME_LENGTH = 100
#: The most levels above a concept.
MAX_DEPTH = 16
#: Characters around a name in running text that are no part of it.
_QUOTES = " \"'“”‘’«»"
_ENDS = ".,;:!?"


def concept_name(name: str) -> str:
    """Return a name in its shown form: white space folded, without the punctuation around it.

    Raises Invalid for a name that is empty, longer than 100 characters, or cannot be stored.
    """
    check_text("a concept's name", name)
    shown = _strip_punctuation(unicodedata.normalize("NFC", name))
    if not shown or len(shown) > NAME_LENGTH:
        raise Invalid(f"a concept's name must have 1 to {NAME_LENGTH} characters, got {len(shown)}")
    return shown


def concept_key(name: str) -> str:
    """Return the key that all names of one concept share: the shown name in compatible form, case folded.

    Plurals and other inflections are concepts of their own ("news" is not "new"); a person can merge them.
    Raises Invalid as `concept_name` does, and for a name that grows beyond 100 characters when its case is folded.
    """
    folded = unicodedata.normalize("NFKC", concept_name(name)).casefold()
    key = _strip_punctuation(unicodedata.normalize("NFKC", folded))
    if not key or len(key) > NAME_LENGTH:
        raise Invalid(f"a concept's name must have 1 to {NAME_LENGTH} characters, folded it has {len(key)}")
    return key


def check_strength(strength: float) -> float:
    """Return the strength of a link, 0 to 1; raises Invalid for any other number, NaN among them."""
    if not 0 <= strength <= 1:
        raise Invalid(f"a concept's link must have a strength from 0 to 1, got {strength}")
    return float(strength)


def flatten[K: Hashable](parents: Mapping[K, K | None]) -> dict[K, tuple[K, ...]]:
    """Return all broader concepts of each concept, the broadest first. A parent that is not a key is left out.

    Raises Invalid for a cycle, and for more than MAX_DEPTH concepts above one.
    """
    ancestors: dict[K, tuple[K, ...]] = {}
    for concept in parents:
        chain: list[K] = []
        current: K | None = concept
        while current is not None and current in parents and current not in ancestors:
            if current in chain:
                raise Invalid(f"a concept cannot be broader than itself: {_path(chain, current)}")
            chain.append(current)
            current = parents[current]
        above = (*ancestors[current], current) if current is not None and current in ancestors else ()
        for key in reversed(chain):
            ancestors[key] = above
            above = (*above, key)
        if len(ancestors[concept]) > MAX_DEPTH:
            raise Invalid(
                f"at most {MAX_DEPTH} concepts may be above one, {concept} would have {len(ancestors[concept])}"
            )
    return ancestors


def with_parent[K: Hashable](
    parents: Mapping[K, K | None], concept: K, parent: K | None
) -> dict[K, K | None]:
    """Return the hierarchy with a concept moved below `parent`, or below none. Raises Invalid as `flatten` does."""
    changed = {**parents, concept: parent}
    flatten(changed)
    return changed


def with_merged[K: Hashable](parents: Mapping[K, K | None], *, retained: K, gone: K) -> dict[K, K | None]:
    """Return the hierarchy with `gone` merged into `retained`, which inherits the narrower concepts of `gone`.

    Where `retained` was below `gone`, or had no parent and was not above `gone`, it gets the parent of `gone`.
    Raises Invalid for a concept and itself, and as `flatten` does.
    """
    if retained == gone:
        raise Invalid(f"a concept cannot be merged with itself: {retained}")
    changed: dict[K, K | None] = {
        concept: retained if parent == gone else parent
        for concept, parent in parents.items()
        if concept != gone
    }
    above = flatten(parents)
    if gone in above[retained] or (parents[retained] is None and retained not in above[gone]):
        changed[retained] = parents[gone]
    flatten(changed)
    return changed


def _strip_punctuation(text: str) -> str:
    return " ".join(text.split()).rstrip(_QUOTES + _ENDS).lstrip(_QUOTES)


def _path[K](chain: list[K], current: K) -> str:
    return " → ".join(str(key) for key in [*chain[chain.index(current) :], current])
