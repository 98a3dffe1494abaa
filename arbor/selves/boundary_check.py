"""Match texts with an agent's boundaries, and decide whether an action may proceed (seed 004, "Boundaries").

A text matches a boundary by one of its patterns, on word borders, or by the meaning of one of its examples.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from arbor.memory.text.lexical import words_of
from arbor.quotations import counted
from arbor.selves.boundaries import BoundaryResponse, BoundaryRule, BoundaryType
from arbor.selves.negation import is_negated

#: The cosine above which a text matches an example (the origin of seed 004).
SIMILARITY = 0.75
#: A negotiable boundary of flexibility f requires (1 - f) times as many words of reasoning, besides its name.
WORDS_TO_NEGOTIATE = 20

type Vector = Sequence[float] | npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundaryMatch:
    """A boundary that a text matches; `text` is the index of the text among those checked, `why` describes the match."""

    boundary: BoundaryRule
    text: int
    why: str


def find_matches(
    texts: Sequence[str], boundaries: Collection[BoundaryRule], vectors: Mapping[str, Vector]
) -> list[BoundaryMatch]:
    """Return the boundary matches of texts, the most important first; a boundary matches a text at most once.

    `vectors` are those of texts and examples, by text, all of one model; texts without a vector match by patterns alone.
    """
    plain = [fold_text(text) for text in texts]
    cosines = _cosines_of(texts, boundaries, vectors)
    matches = []
    for boundary in boundaries:
        for index, text in enumerate(texts):
            why = _explain_pattern(plain[index], boundary) or _explain_meaning(
                boundary, cosines.get(text, {})
            )
            if why:
                matches.append(BoundaryMatch(boundary=boundary, text=index, why=why))
    return sorted(matches, key=lambda match: (-match.boundary.importance, match.boundary.name, match.text))


def may_proceed(boundary: BoundaryRule, reasoning: str) -> bool:
    """Return whether an action may proceed despite a boundary match.

    Never for a refusal, always for a flag. For a negotiable boundary, the reasoning of the decision must name the boundary
    and give reasons in at least (1 - flexibility) · 20 further words. Flexibility 0 is not negotiable.
    """
    if boundary.response is BoundaryResponse.FLAG:
        return True
    if boundary.response is BoundaryResponse.REFUSE or boundary.flexibility <= 0:
        return False
    name = [*words_of(boundary.name.replace("_", " "))]
    words = [*words_of(reasoning.replace("_", " "))]
    is_named = any(words[at : at + len(name)] == name for at in range(len(words)))
    return is_named and len(words) - len(name) >= words_to_negotiate(boundary)


def words_to_negotiate(boundary: BoundaryRule) -> int:
    """Return the number of words that a decision needs to negotiate a boundary."""
    # Rounded first: (1 - 0.7) · 20 is a little more than 6.
    return math.ceil(round((1 - boundary.flexibility) * WORDS_TO_NEGOTIATE, 6))


def negotiated_words(boundary: BoundaryRule) -> int | None:
    """Return the number of words that negotiate a boundary; None for one that is not negotiable."""
    negotiable = boundary.response is BoundaryResponse.NEGOTIATE and boundary.flexibility > 0
    return words_to_negotiate(boundary) if negotiable else None


def at_least_words(count: int) -> str:
    """Return the number of words that a decision needs besides the name of the boundary, as text."""
    return f"at least {counted(count, 'more word')}"


def boundaries_in_force(
    defaults: Sequence[BoundaryRule], own: Sequence[Mapping[str, Any]]
) -> tuple[BoundaryRule, ...]:
    """Return an agent's boundaries: the defaults, unless overridden or disabled by a row of their name, and its own.

    `own` are rows of boundaries as JSON.
    """
    by_name = {boundary.name: boundary for boundary in defaults}
    for row in own:
        by_name.pop(row["name"], None)
        if row["enabled"]:
            by_name[row["name"]] = _rule(row)
    return tuple(by_name.values())


def _rule(row: Mapping[str, Any]) -> BoundaryRule:
    return BoundaryRule(
        name=row["name"],
        type=BoundaryType(row["type"]),
        response=BoundaryResponse(row["response"]),
        description=row["description"],
        patterns=tuple(row["patterns"]),
        examples=tuple(row["examples"]),
        flexibility=row["flexibility"],
        importance=row["importance"],
    )


def _explain_pattern(plain: str, boundary: BoundaryRule) -> str:
    match = (
        _first_unnegated(compile_patterns(boundary.patterns), plain, boundary) if boundary.patterns else None
    )
    if match is None and _has_hint(plain, boundary.hints):
        plain = "\n".join(" ".join(line.split()) for line in plain.splitlines() if line.strip())
        match = _first_unnegated(_compile_expressions(boundary.expressions), plain, boundary)
    return f"it says “{' '.join(match.group().split()).lstrip('.!?;:, ')}”" if match else ""


def _has_hint(plain: str, hints: Sequence[str]) -> bool:
    # A loop takes half the time of `any`, for each text and each boundary.
    for hint in hints:  # noqa: SIM110
        if hint in plain:
            return True
    return False


def _first_unnegated(pattern: re.Pattern[str], plain: str, boundary: BoundaryRule) -> re.Match[str] | None:
    """Return the first match; for a default boundary, the first that is not negated."""
    if not boundary.expressions:
        return pattern.search(plain)
    return next((match for match in pattern.finditer(plain) if not is_negated(plain, *match.span())), None)


def _cosines_of(
    texts: Sequence[str], boundaries: Collection[BoundaryRule], vectors: Mapping[str, Vector]
) -> Mapping[str, Mapping[str, float]]:
    """Return the cosine of each text and each example, where both have vectors."""
    known = [text for text in dict.fromkeys(texts) if text in vectors]
    examples = [
        example for boundary in boundaries if known for example in boundary.examples if example in vectors
    ]
    if not examples:
        return {}
    text_rows = np.asarray([vectors[text] for text in known], dtype=np.float32)
    example_rows = np.asarray([vectors[example] for example in examples], dtype=np.float32)
    lengths = np.outer(np.linalg.norm(text_rows, axis=1), np.linalg.norm(example_rows, axis=1))
    cosines = (text_rows @ example_rows.T) / np.where(lengths > 0, lengths, 1.0)
    return {
        text: dict(zip(examples, row, strict=True)) for text, row in zip(known, cosines.tolist(), strict=True)
    }


def _explain_meaning(boundary: BoundaryRule, cosines: Mapping[str, float]) -> str:
    nearest = max(
        (example for example in boundary.examples if example in cosines),
        key=cosines.__getitem__,
        default=None,
    )
    if nearest is None or not cosines[nearest] > SIMILARITY:
        return ""
    return f"it means much the same as “{nearest}” ({cosines[nearest]:.2f})"


def compile_boundaries(boundaries: Iterable[BoundaryRule]) -> None:
    """Compile the expressions of boundaries ahead of their first use; those of the defaults take 0.1 s."""
    for boundary in boundaries:
        compile_patterns(boundary.patterns)
        _compile_expressions(boundary.expressions)


@lru_cache(maxsize=64)
def _compile_expressions(expressions: tuple[str, ...]) -> re.Pattern[str]:
    # A blank also matches a line end; runs of white space were folded before.
    return re.compile(
        "|".join(rf"(?:(?<!\w)(?:{expression})(?!\w))" for expression in expressions).replace(" ", r"[ \n]")
    )


@lru_cache(maxsize=1024)
def compile_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return an expression for folded texts that matches whole words; `word*` matches a beginning."""
    # An empty pattern would match everywhere; without patterns, nothing matches.
    words = "|".join(_expression(pattern.strip()) for pattern in patterns if pattern.strip(" *").strip())
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)" if words else r"(?!)")


def _expression(pattern: str) -> str:
    words = [re.escape(word) for word in fold_text(pattern.removesuffix("*")).split()]
    return r"\s+".join(words) + (r"\w*" if pattern.endswith("*") else "")


def fold_text(text: str) -> str:
    """Return a text in the form that patterns are compared in."""
    return unicodedata.normalize("NFKC", text).casefold()
