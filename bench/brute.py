"""Brute-force recall in numpy over all rows of an agent, as the reference for recall.

The memories of the benchmarks have no neighborhoods, episodes, activation, feelings or uses, so these score components are 0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg

from apps.memories.services.embedding.embedding import embedder
from apps.memories.services.recall.recaller import recall
from arbor.memory.recall.candidates import Candidate, Candidates
from arbor.memory.recall.fusion import REACH, SEEDS, Background, ScoreInputs, rank
from arbor.memory.recall.recall_request import ReadQuery, RecallRequest, meaning_text, read_query
from arbor.memory.text.lexical import counted_indices, query_terms
from bench import minds
from bench.support.population import BenchAgent

LIMIT = 10


def share_exact(database: psycopg.Connection[Any], agent: BenchAgent, questions: Sequence[str]) -> float:
    """Return the share of queries for which recall and brute force find the same memories in the same order."""
    mind = _Mind(database, agent)
    now = datetime.now(UTC)
    equal = 0
    for text in questions:
        answer = recall(
            tenant_id=agent.tenant_id,
            request=RecallRequest(agent_id=agent.agent_id, text=text, limit=LIMIT, now=now),
        )
        equal += [memory.id for memory in answer] == mind.recall(text, now)
    return equal / len(questions)


class _Mind:
    """All memories of one agent in numpy."""

    def __init__(self, database: psycopg.Connection[Any], agent: BenchAgent) -> None:
        rows = database.execute(
            "SELECT id, embedding::text, lexical::text, session, position, role, content, occurred_at, importance,"
            " decay_rate, trust FROM memories_memory WHERE agent_id = %s AND status = 'active'",
            [agent.agent_id],
        ).fetchall()
        self._rows = rows
        self._matrix: npt.NDArray[np.float32] = np.array(
            [json.loads(row[1]) if row[1] else [0.0] * minds.vector_length() for row in rows],
            dtype=np.float32,
        )
        self._embedded = np.array([row[1] is not None for row in rows])
        self._words = [_weights(row[2]) for row in rows]
        self._df: dict[int, int] = dict(
            database.execute(
                "SELECT term, sum(memories)::int FROM (SELECT term, memories FROM memories_term WHERE agent_id = %(id)s"
                " UNION ALL SELECT unnest(recent), 1 FROM memories_term WHERE agent_id = %(id)s) counted GROUP BY term",
                {"id": agent.agent_id},
            ).fetchall()
        )

    def recall(self, text: str, now: datetime) -> list[UUID]:
        """Return the ids by the rules of `apps.memories.services.recall.recaller`."""
        df = {term: self._df[term] for term in counted_indices(query_terms(text)) if term in self._df}
        reading = read_query(text, df=df, documents=self._df.get(0, 0), now=now)
        similarity = self._matrix @ _rounded_to_half(embedder().embed([meaning_text(text, df)])[0])
        words = np.array(
            [
                sum(weight * terms.get(term, 0.0) for term, weight in reading.lexical.items())
                for terms in self._words
            ]
        )
        chosen = self._chosen(similarity, words)
        background = Background(
            mean=float(similarity[self._embedded].mean()), deviation=float(similarity[self._embedded].std())
        )
        candidates = Candidates.of([self._candidate(i, similarity, words) for i in sorted(chosen)])
        ranked = rank(
            ScoreInputs(candidates=candidates, reading=_timeless(reading), background=background),
            now=now,
            limit=LIMIT,
        )
        return [memory.id for memory in ranked]

    def _chosen(self, similarity: npt.NDArray[Any], words: npt.NDArray[Any]) -> set[int]:
        """Return the places of the nearest memories by meaning, the best by words, and the turns beside them."""
        most = max(SEEDS, LIMIT)
        nearest = sorted(np.flatnonzero(self._embedded), key=lambda i: (-similarity[i], self._rows[i][0]))[
            :most
        ]
        best_by_words = sorted(np.flatnonzero(words > 0), key=lambda i: (-words[i], self._rows[i][0]))[:most]
        chosen = {int(i) for i in (*nearest, *best_by_words)}
        places = {(row[3], row[4]): i for i, row in enumerate(self._rows) if row[3]}
        beside = {
            places[(self._rows[i][3], self._rows[i][4] + step)]
            for i in chosen
            for step in range(-REACH, REACH + 1)
            if (self._rows[i][3], self._rows[i][4] + step) in places
        }
        return chosen | beside

    def _candidate(self, i: int, similarity: npt.NDArray[Any], words: npt.NDArray[Any]) -> Candidate:
        row = self._rows[i]
        return Candidate(
            id=row[0],
            words=float(words[i]),
            similarity=float(similarity[i]) if self._embedded[i] else None,
            session=row[3],
            position=row[4],
            role=row[5],
            asks="?" in row[6],
            occurred_at=row[7],
            last_access_at=None,
            importance=row[8],
            decay_rate=row[9],
            trust=row[10],
        )


def _timeless(reading: ReadQuery) -> ReadQuery:
    # The synthetic questions name no time.
    assert reading.span is None, reading.span
    return reading


def _rounded_to_half(vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return vector.astype(np.float16).astype(np.float32)


def _weights(text: str | None) -> dict[int, float]:
    """Parse a `sparsevec`."""
    if not text:
        return {}
    inside = text[1 : text.index("}")]
    return {
        int(number): float(weight)
        for number, _, weight in (pair.partition(":") for pair in inside.split(",") if pair)
    }
