"""Clusters: form them, assign memories to them, and merge those that are the same.

Embedders differ in what a cosine means (docs/explanation/recall.md): nearness is measured in deviations above the mean cosine of
the agent's own memories, so that one rule fits them all. Everything is in the order of the ids, so that the same
memories make the same clusters however they are handed in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import numpy.typing as npt

from arbor.errors import Invalid
from arbor.memory.values import ScoreTerms

type Vectors = npt.NDArray[np.float32]

#: The most clusters that a memory belongs to (seed 004, `assign_memory_to_clusters`; its origin's constant).
MOST_EACH = 3
#: Members without which there is no cluster.
LEAST_MEMBERS = 3
#: Clusters of one agent: more than anyone could distinguish; 50 memories each in a full mind.
MOST_CLUSTERS = 200
#: Deviations above the mean cosine at which a memory belongs to a centre: the origin's 0.7, made relative. On dialogs of
#: 400 to 700 turns it makes 22 to 54 clusters, with 58 to 72 % of the turns in one (docs/explanation/clusters.md).
BELONGS_AT = 3.5
#: How many deviations less will do between two memories, for the first sketch of a cluster: they are less near to each
#: other than to their centre.
SKETCHED_BELOW = 1.0
#: How many deviations less will do to stay in a cluster: one does not fall out of it because its centre moved a little.
LEAVES_BELOW = 0.5
#: Deviations above a query's mean cosine with the agent's memories from which a cluster resonates, and from which a memory is
#: clear. (The origin's 0.7 and 0.5, made relative; measured in docs/explanation/clusters.md.)
RESONATES_AT = 3.0
CLEAR_AT = 3.5
#: A memory is clear by its words if it has them for so much of what the query's weigh, 0 to 1.
CLEAR_WORDS = 0.5
#: Clusters that are on the tip of the tongue at once.
MOST_PARTIAL = 3
#: Below this cosine nothing is near, however unlike everything else is.
LEAST_COSINE = 0.3
#: What rounding to half precision may take from a cosine.
ROUNDING = 1e-3
#: Seeds in a row that may fail before no more clusters are looked for.
_FRUITLESS = 200
#: Memories compared with all others at once: 40 MB in a full mind.
_BLOCK = 1000
#: Turns of averaging and gathering in which a sketch becomes a cluster.
_SKETCHES = 3


@dataclass(frozen=True, kw_only=True)
class Cosines:
    """The mean and deviation of the cosines among an agent's memories, or of a query with them."""

    mean: float
    deviation: float

    def at(self, deviations: float) -> float:
        """Return the cosine that lies `deviations` above the mean.

        At least LEAST_COSINE; at most half of the way from the mean to 1, so that it can be reached.
        """
        reachable = (1 + self.mean) / 2
        return max(LEAST_COSINE, min(self.mean + deviations * self.deviation, reachable)) - ROUNDING

    @property
    def clear(self) -> float:
        """The cosine from which a memory is clear to a query."""
        return self.mean + CLEAR_AT * self.deviation


@dataclass(frozen=True, kw_only=True)
class ClusterValue:
    """A cluster as a value: its id (None for a new one), its centre, and the cosines of its members, 0 to 1, by id."""

    id: UUID | None
    #: Of length 1; None where it is not known, or of another dimension.
    centroid: Vectors | None
    members: Mapping[UUID, float]
    #: Somebody named it: it stays while it has a member.
    named: bool = False


def check_vectors(vectors: npt.ArrayLike, *, dimension: int | None = None) -> Vectors:
    """Return the vectors as float32 rows of length 1, shape (n, d).

    Raises Invalid for another shape or dimension, and for rows that are not finite, or zero.
    """
    rows = np.asarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or (dimension is not None and rows.shape[1] != dimension):
        wanted = "n" if dimension is None else f"{dimension}"
        raise Invalid(f"vectors must come as rows of {wanted} numbers, got an array of shape {rows.shape}")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise Invalid("vectors must be finite and not zero, got one that is not")
    return np.asarray(rows / lengths[:, None], dtype=np.float32)


def cosines_among(vectors: Vectors) -> Cosines:
    """Return mean and deviation of the cosines of all pairs of rows of length 1; exact, without making the pairs."""
    count = len(vectors)
    if count < 2:
        return Cosines(mean=0.0, deviation=0.0)
    rows = vectors.astype(np.float64)
    pairs = count * (count - 1)
    # Σᵢⱼ xᵢ·xⱼ = |Σ xᵢ|², and Σᵢⱼ (xᵢ·xⱼ)² = |XᵀX|²; the rows with themselves are taken out.
    own = np.square(rows).sum(axis=1)
    mean = float(np.square(rows.sum(axis=0)).sum() - own.sum()) / pairs
    squares = float(np.square(rows.T @ rows).sum() - np.square(own).sum()) / pairs
    return Cosines(mean=mean, deviation=math.sqrt(max(0.0, squares - mean * mean)))


def centroid_of(vectors: Vectors) -> Vectors | None:
    """Return the mean of rows, of length 1; None where they cancel each other out, or there are none."""
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
    held: npt.NDArray[np.bool_] | None = None,
    leaves: float = 0.0,
    most: int = MOST_EACH,
) -> Vectors:
    """Return how strongly each row belongs to each centroid, shape (n, k): its cosine, or 0 where it does not.

    A row stays where it is `held` while it is at `leaves` or nearer; the rest of its `most` places go to the nearest at
    `least` or nearer, of equally near ones to the first.
    """
    cosines: Vectors = np.clip(vectors @ centroids.T, 0.0, 1.0)
    stays = held & (cosines >= leaves) if held is not None else np.zeros(cosines.shape, dtype=bool)
    cosines[~(stays | (cosines >= least))] = 0.0
    if cosines.shape[1] > most:
        others = np.argsort(-(cosines + stays), axis=1, kind="stable")[:, most:]
        np.put_along_axis(cosines, others, 0.0, axis=1)
    return cosines


def form(
    vectors: Vectors, beside: Vectors, *, sketched: float, least: float, apart: float, most: int
) -> list[Vectors]:
    """Return the centres of new clusters among memories that fit none, at most `most`, the densest first.

    A leader algorithm: the memory with the most others at `sketched` or nearer begins a cluster with them; what lies
    within `least` of their centre belongs to it, and is taken out. Fewer than LEAST_MEMBERS are no cluster, nor are those
    whose centre is at `apart` or nearer to that of another, new or among those `beside`: that one is theirs.
    """
    free = np.ones(len(vectors), dtype=bool)
    crowd = _crowds(vectors, sketched)
    seeds = np.argsort(-crowd, kind="stable")
    centres = beside
    found: list[Vectors] = []
    fruitless = 0
    for seed in seeds[crowd[seeds] >= LEAST_MEMBERS]:
        if len(found) >= most or fruitless >= _FRUITLESS:
            break
        if not free[seed]:
            continue
        rows = np.flatnonzero(free)
        centre, members = _sketch(vectors[rows], vectors[seed], sketched=sketched, least=least)
        if centre is None:
            fruitless += 1
            continue
        free[rows[members]] = False
        if not (centres @ centre >= apart).any():
            centres = np.vstack([centres, centre])
            found.append(centre)
        fruitless = 0
    return found


def _sketch(
    vectors: Vectors, seed: Vectors, *, sketched: float, least: float
) -> tuple[Vectors | None, npt.NDArray[np.bool_]]:
    """Return the centre of what lies around a seed, and which rows belong to it; None if they are too few."""
    members = vectors @ seed >= sketched
    centre = None
    for _ in range(_SKETCHES):
        centre = centroid_of(vectors[members]) if members.sum() >= LEAST_MEMBERS else None
        if centre is None:
            break
        members = vectors @ centre >= least
    return (centre if members.sum() >= LEAST_MEMBERS else None), members


def _crowds(vectors: Vectors, least: float) -> npt.NDArray[np.intp]:
    """Return for each row how many rows, itself included, are that near to it."""
    blocks = [
        (vectors[start : start + _BLOCK] @ vectors.T >= least).sum(axis=1)
        for start in range(0, len(vectors), _BLOCK)
    ]
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, kw_only=True)
class Felt:
    """The contribution of a member to the emotional signature and importance of its cluster."""

    #: How strongly it belongs, 0 to 1.
    strength: float
    #: -1 to 1.
    valence: float
    #: 0 to 1.
    importance: float


@dataclass(frozen=True, kw_only=True)
class EmotionalSignature:
    """A cluster's emotional signature and weight."""

    #: Mean valence, -1 to 1, and mean strength of feeling, 0 to 1.
    valence: float
    intensity: float
    #: Mean importance, each member's counted by how strongly it belongs; 0 to 1.
    importance: float


def feeling_of(members: Sequence[Felt]) -> EmotionalSignature:
    """Return how a cluster with these members feels, and what it weighs: nothing without any."""
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
    """The cosines of a query with a cluster's centre and with the nearest of its memories, -1 to 1."""

    id: UUID
    centre: float
    best_memory: float


def is_clear(terms: ScoreTerms) -> bool:
    """Return whether a recalled memory is clear by its words alone. `Cosines.clear` decides by meaning."""
    return terms.words >= CLEAR_WORDS


def tip_of_tongue(resonances: Sequence[ClusterResonance], cosines: Cosines) -> list[ClusterResonance]:
    """Return the clusters that a query brings to mind without any of their memories being clear, the nearest first.

    `cosines` are the query's with all of the agent's memories. A cluster resonates at RESONATES_AT deviations or more while
    its best memory is below CLEAR_AT, and less near than the cluster as a whole (seed 004, `find_partial_activations`).
    At most MOST_PARTIAL.
    """
    found = [
        resonance
        for resonance in resonances
        if resonance.centre >= cosines.at(RESONATES_AT)
        and resonance.best_memory < min(cosines.clear, resonance.centre)
    ]
    return sorted(found, key=lambda resonance: (-resonance.centre, resonance.id))[:MOST_PARTIAL]
