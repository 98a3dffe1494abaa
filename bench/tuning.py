"""Compare rankings of the same candidates with each weight of the ranker removed, halved and doubled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from apps.memories.services.recall.scan import Query, ScanResult
from arbor.memory.recall.fusion import ScoreInputs, rank
from arbor.memory.recall.weights import WEIGHT_NAMES, Weights

#: Factors by which one weight is changed at a time.
CHANGES = {"removed": 0.0, "halved": 0.5, "doubled": 2.0}
_RESAMPLES = 4_000
_SEED = 1

type Shares = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class JudgedQuestion:
    """A question with its candidates, and which of them answer it."""

    query: Query
    found: ScanResult
    #: Whether each candidate is evidence, and the number of all evidence turns.
    hits: npt.NDArray[np.bool_]
    evidence: int


def tune(
    questions: Sequence[JudgedQuestion], *, depths: Sequence[int], weights: Weights
) -> list[dict[str, Any]]:
    """Return a row for these weights and one for each changed one: evidence recall at each depth, and the change.

    Intervals are 95 %, by a paired bootstrap over the questions. Association along neighborhoods is not recomputed.
    """
    unchanged = _shares(questions, depths, weights)
    rows = [{"weight": "as they are", "value": "", **_means(unchanged)}]
    for name, change, changed in variants(weights):
        shares = _shares(questions, depths, changed)
        value = getattr(changed, name)
        differences = {depth: shares[depth] - unchanged[depth] for depth in depths}
        rows.append({"weight": f"{name} {change}", "value": value, **_means(shares), **_changes(differences)})
    return rows


def variants(weights: Weights) -> Iterator[tuple[str, str, Weights]]:
    """Yield the name of each weight, the change, and all weights with that change."""
    for name in WEIGHT_NAMES:
        for change, factor in CHANGES.items():
            changes: Mapping[str, float] = {name: getattr(weights, name) * factor}
            yield name, change, replace(weights, **changes)


def _shares(
    questions: Sequence[JudgedQuestion], depths: Sequence[int], weights: Weights
) -> dict[int, Shares]:
    """Return by depth the share of each question's evidence that is recalled."""
    shares = {depth: np.zeros(len(questions)) for depth in depths}
    for number, question in enumerate(questions):
        ranked = rank(
            ScoreInputs(
                candidates=question.found.candidates,
                reading=question.query.reading,
                background=question.found.background,
                weights=weights,
                links=question.found.links,
            ),
            now=question.query.request.now,
            limit=max(depths),
        )
        hits = question.hits[[candidate.index for candidate in ranked]]
        for depth in depths:
            shares[depth][number] = hits[:depth].sum() / question.evidence
    return shares


def _means(shares: Mapping[int, Shares]) -> dict[str, Any]:
    return {f"recall_at_{depth}": round(float(values.mean()), 4) for depth, values in shares.items()}


def _changes(differences: Mapping[int, Shares]) -> dict[str, Any]:
    generator = np.random.default_rng(_SEED)
    changes: dict[str, Any] = {}
    for depth, values in differences.items():
        drawn = generator.integers(0, len(values), (_RESAMPLES, len(values)), dtype=np.int32)
        low, high = np.quantile(values[drawn].mean(axis=1), (0.025, 0.975))
        changes[f"change_at_{depth}"] = round(float(values.mean()), 4)
        changes[f"between_{depth}"] = f"{low:+.3f} to {high:+.3f}"
    return changes
