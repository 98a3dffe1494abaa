"""Recluster all memories of an agent at once: retain, merge, dissolve and form clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import numpy.typing as npt

from arbor.embedding.ports import Vectors
from arbor.errors import Invalid
from arbor.memory.clusters.clusters import (
    BELONGS_AT,
    LEAVES_BELOW,
    MAX_CLUSTERS,
    MIN_MEMBERS,
    SKETCHED_BELOW,
    ClusterValue,
    assign,
    centroid_of,
    cosines_among,
    find_new_centers,
)

#: The position, between the cosine of membership (0) and equality (1), from which two centers are one cluster.
MERGED_AT = 0.6
#: The most searches for new clusters among unassigned memories, and the most rounds of assigning and averaging between them;
#: after these, almost no memory moves.
_MAX_SEARCHES = 4
_MAX_AVERAGINGS = 10
#: The strength of a membership that was stored as 0.
_MIN_STRENGTH = 1e-6


def recluster(
    ids: Sequence[UUID], vectors: Vectors, existing: Sequence[ClusterValue], *, deviations: float = BELONGS_AT
) -> list[ClusterValue]:
    """Return the clusters of all memories of an agent: existing ones, the oldest first, then new ones.

    `vectors` are rows of length 1 in the order of `ids`. Each center becomes the mean of its members. Clusters too near each
    other are merged, those with too few members dissolved, and memories without a cluster form new ones. Raises Invalid for
    another number of ids than vectors.
    """
    if len(ids) != len(vectors) or len(set(ids)) != len(ids):
        raise Invalid(f"one vector for each id is needed, got {len(vectors)} for {len(set(ids))}")
    order = sorted(range(len(ids)), key=lambda row: ids[row])
    assignment = _Assignment([ids[row] for row in order], vectors[order], deviations)
    assignment.add_existing(
        sorted((cluster for cluster in existing if cluster.id), key=lambda cluster: str(cluster.id))
    )
    assignment.settle()
    for _ in range(_MAX_SEARCHES):
        if not assignment.form():
            break
        assignment.settle()
    return assignment.clusters()


@dataclass(frozen=True, kw_only=True)
class _ClusterHead:
    """The id of a cluster, and whether a person or agent named it."""

    id: UUID | None
    named: bool


class _Assignment:
    """The strengths with which memories (rows) belong to clusters (columns)."""

    def __init__(self, ids: Sequence[UUID], vectors: Vectors, deviations: float) -> None:
        self._ids = ids
        self._vectors = vectors
        cosines = cosines_among(vectors)
        self._least = cosines.at(deviations)
        self._leaves = cosines.at(deviations - LEAVES_BELOW)
        self._sketched = cosines.at(deviations - SKETCHED_BELOW)
        self._merged = self._least + MERGED_AT * (1 - self._least)
        self._heads: list[_ClusterHead] = []
        self._centers: Vectors = np.zeros((0, vectors.shape[1]), dtype=np.float32)
        self._strengths: Vectors = np.zeros((len(ids), 0), dtype=np.float32)

    def add_existing(self, clusters: Sequence[ClusterValue]) -> None:
        """Add the existing clusters with their members among these memories."""
        row_of = {memory_id: row for row, memory_id in enumerate(self._ids)}
        self._heads = [_ClusterHead(id=cluster.id, named=cluster.named) for cluster in clusters]
        self._centers = np.zeros((len(clusters), self._vectors.shape[1]), dtype=np.float32)
        self._strengths = np.zeros((len(self._ids), len(clusters)), dtype=np.float32)
        for column, cluster in enumerate(clusters):
            for memory_id, strength in cluster.members.items():
                if memory_id in row_of:
                    self._strengths[row_of[memory_id], column] = strength or _MIN_STRENGTH
        self._average_centers()

    def form(self) -> bool:
        """Form new clusters of unassigned memories; return whether there were any."""
        free = self._vectors[~self._assigned().any(axis=1)]
        room = MAX_CLUSTERS - len(self._heads)
        new_centers = find_new_centers(
            free,
            self._centers,
            sketched=self._sketched,
            least=self._least,
            merged=self._merged,
            most=room,
        )
        if new_centers:
            self._heads += [_ClusterHead(id=None, named=False)] * len(new_centers)
            self._centers = np.concatenate([self._centers, np.stack(new_centers)])
            none = np.zeros((len(self._ids), len(new_centers)), dtype=np.float32)
            self._strengths = np.concatenate([self._strengths, none], axis=1)
        return bool(new_centers)

    def settle(self) -> None:
        """Merge clusters, assign memories and average centers until no memory moves, at most _MAX_AVERAGINGS times."""
        for _ in range(_MAX_AVERAGINGS):
            before = self._heads, self._home_clusters()
            self._merge()
            self._assign()
            self._average_centers()
            if before[0] == self._heads and np.array_equal(before[1], self._home_clusters()):
                break

    def clusters(self) -> list[ClusterValue]:
        """Return the current clusters."""
        return [
            ClusterValue(
                id=head.id,
                named=head.named,
                centroid=self._centers[column],
                members={
                    self._ids[row]: float(self._strengths[row, column])
                    for row in np.flatnonzero(self._strengths[:, column]).tolist()
                },
            )
            for column, head in enumerate(self._heads)
        ]

    def _assigned(self) -> npt.NDArray[np.bool_]:
        return self._strengths > 0

    def _home_clusters(self) -> npt.NDArray[np.bool_]:
        """Return the mask of the cluster that each memory belongs to most: at most one in a row."""
        home = np.zeros(self._strengths.shape, dtype=bool)
        if self._heads:
            best = self._strengths.argmax(axis=1)
            rows = np.arange(len(home))
            home[rows, best] = self._strengths[rows, best] > 0
        return home

    def _select(self, columns: Sequence[int]) -> None:
        self._heads = [self._heads[column] for column in columns]
        self._centers = self._centers[columns]
        self._strengths = self._strengths[:, columns]

    def _assign(self) -> None:
        """Assign each memory to its best clusters; dissolve clusters with too few members, and assign again."""
        while self._heads:
            self._strengths = assign(
                self._vectors, self._centers, least=self._least, members=self._assigned(), leaves=self._leaves
            )
            sizes = self._home_clusters().sum(axis=0)
            remaining = [
                column
                for column, head in enumerate(self._heads)
                if sizes[column] >= (1 if head.named else MIN_MEMBERS)
            ]
            if len(remaining) == len(self._heads):
                return
            self._select(remaining)

    def _average_centers(self) -> None:
        """Set each center to the mean of its members; drop clusters without members, or whose members cancel out."""
        home = self._home_clusters()
        centers = [centroid_of(self._vectors[home[:, column]]) for column in range(len(self._heads))]
        remaining = [column for column, center in enumerate(centers) if center is not None]
        self._select(remaining)
        if remaining:
            self._centers = np.stack([center for center in centers if center is not None])

    def _merge(self) -> None:
        """Merge clusters whose centers are too near, the nearest pair first.

        A named cluster absorbs an unnamed one, else the larger the smaller, else the older the newer. Two named clusters are
        not merged.
        """
        named = np.array([head.named for head in self._heads], dtype=bool)
        cosines = self._centers @ self._centers.T
        cosines[np.outer(named, named)] = 0.0
        np.fill_diagonal(cosines, 0.0)
        home = self._home_clusters()
        left = list(range(len(self._heads)))
        while len(left) > 1:
            pair = divmod(int(cosines.argmax()), len(named))
            if cosines[pair] < self._merged:
                break
            survivor, absorbed = sorted(
                pair, key=lambda column: (not named[column], -home[:, column].sum(), column)
            )
            left.remove(absorbed)
            self._strengths[:, survivor] = self._strengths[:, [survivor, absorbed]].max(axis=1)
            home[:, survivor] |= home[:, absorbed]
            center = centroid_of(self._vectors[home[:, survivor]])
            if center is not None:
                self._centers[survivor] = center
            near = self._centers @ self._centers[survivor]
            near[[column for column in range(len(named)) if column not in left]] = 0.0
            near[survivor] = 0.0
            near[named & named[survivor]] = 0.0
            cosines[survivor] = cosines[:, survivor] = near
            cosines[absorbed] = cosines[:, absorbed] = 0.0
        self._select(left)
