"""Form clusters, assign memories to them, and find partial recalls.

Cosines of different embedders are not comparable (docs/explanation/recall.md). Nearness is therefore measured in deviations
above the mean cosine of the agent's own memories. All computations run in the order of the ids, so that the same memories
form the same clusters whatever their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import numpy.typing as npt

from arbor.embedding.ports import Vectors
from arbor.errors import Invalid
from arbor.memory.values import ScoreComponents

#: The most clusters that a memory belongs to (seed 004, `assign_memory_to_clusters`; its origin's constant).
MAX_CLUSTERS_OF_MEMORY = 3
#: The least number of members of a cluster.
MIN_MEMBERS = 3
#: The most clusters of one agent: for 10,000 memories, 50 in each.
MAX_CLUSTERS = 200
#: Deviations above the mean cosine from which a memory belongs to a center: the relative form of the 0.7 of the origin of
#: seed 004. Dialogs of 400 to 700 turns get 22 to 54 clusters, with 58 to 72 % of the turns in one of them (docs/explanation/clusters.md).
BELONGS_AT = 3.5
#: Deviations by which this limit is lower between two memories, for the first sketch of a cluster: memories are less near
#: to each other than to their center.
SKETCHED_BELOW = 1.0
#: Deviations by which the limit is lower for present members, so that a small move of the center drops none of them.
LEAVES_BELOW = 0.5
#: Deviations above a query's mean cosine with the agent's memories from which a cluster resonates, and from which a memory is
#: clear: the relative forms of the 0.7 and 0.5 of the origin of seed 004 (docs/explanation/clusters.md).
RESONATES_AT = 3.0
CLEAR_AT = 3.5
#: The share of the weight of a query's words from which a memory is clear by its words, 0 to 1.
CLEAR_WORDS = 0.5
#: The most partial recalls of one query.
MAX_PARTIAL = 3
#: Below this cosine nothing is near, even where all other memories are less near.
MIN_COSINE = 0.3
#: The most that rounding to half precision takes from a cosine.
ROUNDING = 1e-3
#: Consecutive seeds without a cluster after which the search for clusters ends.
_MAX_FRUITLESS_SEEDS = 200
#: Memories that are compared with all others at once: 40 MB for 10,000 memories.
_BLOCK = 1000
#: Rounds in which the center is averaged and its members are collected again.
_SKETCH_ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class Cosines:
    """The mean and deviation of the cosines among an agent's memories, or of a query with them."""

    mean: float
    deviation: float

    def at(self, deviations: float) -> float:
        """Return the cosine that lies `deviations` above the mean.

        The cosine is at least MIN_COSINE, and otherwise at most halfway from the mean to 1, so that memories can reach it; ROUNDING
        is subtracted.
        """
        reachable = (1 + self.mean) / 2
        return max(MIN_COSINE, min(self.mean + deviations * self.deviation, reachable)) - ROUNDING

    @property
    def clear(self) -> float:
        """The cosine from which a memory is clear to a query."""
        return self.mean + CLEAR_AT * self.deviation


@dataclass(frozen=True, kw_only=True)
class ClusterValue:
    """A cluster as a value: its id (None for a new one), its center, and the cosines of its members, 0 to 1, by id."""

    id: UUID | None
    #: A vector of length 1; None for a center that is unknown or of another dimension.
    centroid: Vectors | None
    members: Mapping[UUID, float]
    #: Whether a person or agent named the cluster, which then stays while it has a member.
    named: bool = False


def check_vectors(vectors: npt.ArrayLike, *, dimension: int | None = None) -> Vectors:
    """Return the vectors as float32 rows of length 1, shape (n, d).

    Raises Invalid for another shape or dimension, and for rows that are not finite, or zero.
    """
    rows = np.asarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or (dimension is not None and rows.shape[1] != dimension):
        wanted = "n" if dimension is None else f"{dimension}"
        raise Invalid(f"vectors must be rows of {wanted} numbers, got an array of shape {rows.shape}")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise Invalid("vectors must be finite and not zero, got one that is not")
    return np.asarray(rows / lengths[:, None], dtype=np.float32)


def cosines_among(vectors: Vectors) -> Cosines:
    """Return mean and deviation of the cosines of all pairs of rows of length 1, exactly, without forming the pairs."""
    count = len(vectors)
    if count < 2:
        return Cosines(mean=0.0, deviation=0.0)
    rows = vectors.astype(np.float64)
    pairs = count * (count - 1)
    # Σᵢⱼ xᵢ·xⱼ = |Σ xᵢ|², and Σᵢⱼ (xᵢ·xⱼ)² = |XᵀX|²; the pairs of a row with itself are subtracted.
    own = np.square(rows).sum(axis=1)
    mean = float(np.square(rows.sum(axis=0)).sum() - own.sum()) / pairs
    squares = float(np.square(rows.T @ rows).sum() - np.square(own).sum()) / pairs
    return Cosines(mean=mean, deviation=math.sqrt(max(0.0, squares - mean * mean)))


def centroid_of(vectors: Vectors) -> Vectors | None:
    """Return the mean of rows, scaled to length 1; None without rows, or where they cancel each other out."""
    if not len(vectors):
        return None
    mean = vectors.astype(np.float64).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length, dtype=np.float32) if length > ROUNDING else None


def assign(
    vectors: Vectors,
    centroids: Vectors,
    *,
    least: float,
    members: npt.NDArray[np.bool_] | None = None,
    leaves: float = 0.0,
    most: int = MAX_CLUSTERS_OF_MEMORY,
) -> Vectors:
    """Return the strength with which each row belongs to each centroid, shape (n, k): the cosine, or 0 for no member.

    `members` marks the present members, which stay at a cosine of `leaves` or more. A row belongs to at most `most` centroids:
    first those it stays with, then the nearest at a cosine of `least` or more, the first of equally near ones.
    """
    cosines: Vectors = np.clip(vectors @ centroids.T, 0.0, 1.0)
    stays = members & (cosines >= leaves) if members is not None else np.zeros(cosines.shape, dtype=bool)
    cosines[~(stays | (cosines >= least))] = 0.0
    if cosines.shape[1] > most:
        others = np.argsort(-(cosines + stays), axis=1, kind="stable")[:, most:]
        np.put_along_axis(cosines, others, 0.0, axis=1)
    return cosines


def find_new_centers(
    vectors: Vectors, existing_centers: Vectors, *, sketched: float, least: float, merged: float, most: int
) -> list[Vectors]:
    """Return the centers of new clusters among memories without a cluster, at most `most`, the densest clusters first.

    A leader algorithm: the memory with the most others at a cosine of `sketched` or more begins a cluster with them. The
    memories at a cosine of `least` or more with the center are its members, and are removed from the search. Fewer than
    MIN_MEMBERS form no cluster, nor do memories whose center has a cosine of `merged` or more with another center, new or
    existing: the two would be merged.
    """
    free = np.ones(len(vectors), dtype=bool)
    near_counts = _count_near(vectors, sketched)
    seeds = np.argsort(-near_counts, kind="stable")
    centers = existing_centers
    new_centers: list[Vectors] = []
    fruitless = 0
    for seed in seeds[near_counts[seeds] >= MIN_MEMBERS]:
        if len(new_centers) >= most or fruitless >= _MAX_FRUITLESS_SEEDS:
            break
        if not free[seed]:
            continue
        rows = np.flatnonzero(free)
        center, members = _sketch(vectors[rows], vectors[seed], sketched=sketched, least=least)
        if center is None:
            fruitless += 1
            continue
        free[rows[members]] = False
        if not (centers @ center >= merged).any():
            centers = np.vstack([centers, center])
            new_centers.append(center)
        fruitless = 0
    return new_centers


def _sketch(
    vectors: Vectors, seed: Vectors, *, sketched: float, least: float
) -> tuple[Vectors | None, npt.NDArray[np.bool_]]:
    """Return the center of the rows around a seed (None if they are too few), and the mask of its members."""
    members = vectors @ seed >= sketched
    center = None
    for _ in range(_SKETCH_ROUNDS):
        center = centroid_of(vectors[members]) if members.sum() >= MIN_MEMBERS else None
        if center is None:
            break
        members = vectors @ center >= least
    return (center if members.sum() >= MIN_MEMBERS else None), members


def _count_near(vectors: Vectors, least: float) -> npt.NDArray[np.intp]:
    """Return, for each row, the number of rows at a cosine of `least` or more, itself included."""
    blocks = [
        (vectors[start : start + _BLOCK] @ vectors.T >= least).sum(axis=1)
        for start in range(0, len(vectors), _BLOCK)
    ]
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, kw_only=True)
class MemberFeeling:
    """The contribution of a member to the emotional signature and importance of its cluster."""

    #: The cosine of the member with the center, 0 to 1.
    strength: float
    #: -1 to 1.
    valence: float
    #: 0 to 1.
    importance: float


@dataclass(frozen=True, kw_only=True)
class EmotionalSignature:
    """A cluster's emotional signature and importance."""

    #: Mean valence, -1 to 1, and mean strength of feeling, 0 to 1.
    valence: float
    intensity: float
    #: The mean of the members' importance, weighted by their strength; 0 to 1.
    importance: float


def emotional_signature(members: Sequence[MemberFeeling]) -> EmotionalSignature:
    """Compute the emotional signature and importance of a cluster; all are 0 without members."""
    weight = sum(member.strength for member in members)
    if not members or weight <= 0:
        return EmotionalSignature(valence=0.0, intensity=0.0, importance=0.0)
    return EmotionalSignature(
        valence=sum(member.valence for member in members) / len(members),
        intensity=sum(abs(member.valence) for member in members) / len(members),
        importance=sum(member.strength * member.importance for member in members) / weight,
    )


@dataclass(frozen=True, kw_only=True)
class ClusterResonance:
    """The cosines of a query with a cluster's center and with the nearest of its memories, -1 to 1."""

    id: UUID
    center: float
    best_memory: float


def is_clear(components: ScoreComponents, *, words_weight: float) -> bool:
    """Return whether a recalled memory is clear by its words alone. `Cosines.clear` decides by meaning.

    `words_weight` is the weight of words in the memory's score; with a weight of 0 no memory is clear by its words.
    """
    return words_weight > 0 and components.words >= CLEAR_WORDS * words_weight


def find_partial_recalls(resonances: Sequence[ClusterResonance], cosines: Cosines) -> list[ClusterResonance]:
    """Return the clusters that a query matches while none of their memories is clear, at most MAX_PARTIAL, nearest first.

    `cosines` describes the query's cosines with all of the agent's memories. A cluster resonates at RESONATES_AT deviations
    or more while its best memory is below CLEAR_AT and less near than the center (seed 004, `find_partial_activations`).
    """
    partial = [
        resonance
        for resonance in resonances
        if resonance.center >= cosines.at(RESONATES_AT)
        and resonance.best_memory < min(cosines.clear, resonance.center)
    ]
    return sorted(partial, key=lambda resonance: (-resonance.center, resonance.id))[:MAX_PARTIAL]
