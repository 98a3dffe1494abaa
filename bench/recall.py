"""One recall, end to end, as every heartbeat does it: by its index alone, and beside it through the table.

`exact` compares each answer with one computed in numpy from all of the agent's rows by the same rule.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import batched
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from django.db import connections

from apps.memories.services.embedding import embedder
from apps.memories.services.recall import recall
from apps.tenants.scope import APP
from arbor.memory.candidates import Candidate, Candidates
from arbor.memory.fusion import REACH, SEEDS, Background, rank
from arbor.memory.lexical import looked_up, query_terms
from arbor.memory.query import Reading, read_query
from arbor.memory.values import Recalled
from bench import minds
from bench.database import superuser
from bench.figures import quantile
from bench.installation import Installation
from bench.population import Inhabitant, populate
from bench.progress import say

LIMIT = 10
#: Answers computed a second time from all rows.
_CHECKED = 40
_INDEX = "memories_memory_mind"
#: The same statement, which then finds its rows by an index and reads them from the table.
_THROUGH_TABLE = "-c enable_indexonlyscan=off"
#: Recalls by the index and through the table take turns, so that both meet the same machine.
_TURN = 20
_WARM_UP = 4


def measure(place: Installation, *, memories: int, agents: int, queries: int) -> dict[str, Any]:
    """Return how long a recall takes over an agent's `memories`, of `agents` agents that have as many."""
    population = populate(agents=agents, tenants=max(1, agents // 10))
    turns = minds.conversations(memories)
    asked = minds.queries(turns, queries)
    with superuser(place) as database:
        minds.load(database, turns, population)
        say("recalling, by the index and through the table in turns")
        before = _index_reads(database)
        covered = _Timed()
        heap = _Timed()
        for turn in batched(asked, _TURN, strict=False):
            _recalls(population, turn, covered, options="")
            _recalls(population, turn, heap, options=_THROUGH_TABLE)
        _connect("")
        reads, fetches = (after - start for after, start in zip(_index_reads(database), before, strict=True))
        say("checking against brute force")
        exact = _share_exact(database, population[0], asked[:_CHECKED])
        size = _one(database, f"SELECT pg_relation_size('{_INDEX}')")
        rows = _one(database, "SELECT count(*) FROM memories_memory")
    return {
        "memories": memories,
        "agents": agents,
        "p50_ms": quantile(covered.ms, 0.5),
        "p95_ms": quantile(covered.ms, 0.95),
        "heap_p50_ms": quantile(heap.ms, 0.5),
        "heap_p95_ms": quantile(heap.ms, 0.95),
        "exact": exact == 1.0,
        "exact_share": exact,
        "queries": round(covered.statements / len(covered.ms), 1),
        "index_bytes_per_memory": round(size / rows),
        "times_faster": round(quantile(heap.ms, 0.5) / max(quantile(covered.ms, 0.5), 0.001), 1),
        # Of the entries read from the index, none had to be looked up in the table.
        "index_only": reads >= memories and fetches < reads / 100,
    }


@dataclass(kw_only=True)
class _Timed:
    ms: list[float] = field(default_factory=list)
    statements: int = 0

    def count(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Count a statement that is sent."""
        self.statements += 1
        return execute(sql, params, many, context)


def _connect(options: str) -> None:
    """Let the next recall open a connection with these options."""
    connections[APP].close()
    connections.settings[APP]["OPTIONS"]["options"] = options
    del connections[APP]


def _recalls(population: Sequence[Inhabitant], asked: Sequence[str], timed: _Timed, *, options: str) -> None:
    """Recall for one agent after the other; the first ones prepare the connection and do not count."""
    _connect(options)
    for text in asked[:_WARM_UP]:
        _recall(population[0], text)
    with connections[APP].execute_wrapper(timed.count):
        for text in asked:
            agent = population[len(timed.ms) % len(population)]
            started = time.perf_counter()
            _recall(agent, text)
            timed.ms.append((time.perf_counter() - started) * 1000)


def _recall(agent: Inhabitant, text: str) -> list[Recalled]:
    return recall(tenant_id=agent.tenant_id, agent_id=agent.agent_id, text=text, limit=LIMIT)


def _index_reads(database: psycopg.Connection[Any]) -> tuple[int, int]:
    """Return how many entries of the index were read, and how many table rows were fetched for them."""
    time.sleep(0.2)
    row = database.execute(
        "SELECT coalesce(idx_tup_read, 0), coalesce(idx_tup_fetch, 0) FROM pg_stat_user_indexes WHERE indexrelname = %s",
        [_INDEX],
    ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def _one(database: psycopg.Connection[Any], statement: str) -> Any:
    row = database.execute(statement).fetchone()
    assert row is not None
    return row[0]


# --- Brute force -----------------------------------------------------------------------------------------


def _share_exact(database: psycopg.Connection[Any], agent: Inhabitant, asked: Sequence[str]) -> float:
    """Return for which share of the queries recall answers as brute force does, in the same order."""
    mind = _Mind(database, agent)
    now = datetime.now(UTC)
    same = 0
    for text in asked:
        answer = recall(tenant_id=agent.tenant_id, agent_id=agent.agent_id, text=text, limit=LIMIT, now=now)
        same += [each.id for each in answer] == mind.recall(text, now)
    return same / len(asked)


class _Mind:
    """All memories of one agent in numpy."""

    def __init__(self, database: psycopg.Connection[Any], agent: Inhabitant) -> None:
        rows = database.execute(
            "SELECT id, embedding::text, lexical::text, session, position, role, content, occurred_at, importance,"
            " decay_rate, trust FROM memories_memory WHERE agent_id = %s AND status = 'active'",
            [agent.agent_id],
        ).fetchall()
        self._rows = rows
        self._matrix: npt.NDArray[np.float32] = np.array(
            [json.loads(row[1]) if row[1] else [0.0] * minds.dimension() for row in rows], dtype=np.float32
        )
        self._embedded = np.array([row[1] is not None for row in rows])
        self._words = [_weights(row[2]) for row in rows]
        self._df: dict[int, int] = dict(
            database.execute(
                "SELECT term, memories FROM memories_term WHERE agent_id = %s", [agent.agent_id]
            ).fetchall()
        )

    def recall(self, text: str, now: datetime) -> list[UUID]:
        """Return the ids that the rule of `apps.memories.services.recall` asks for."""
        df = {term: self._df[term] for term in looked_up(query_terms(text)) if term in self._df}
        reading = read_query(text, df=df, documents=self._df.get(0, 0), now=now)
        similarity = self._matrix @ _halved(embedder().embed([reading.meaning_text])[0])
        words = np.array(
            [
                sum(weight * each.get(term, 0.0) for term, weight in reading.lexical.items())
                for each in self._words
            ]
        )
        chosen = self._chosen(similarity, words)
        background = Background(
            mean=float(similarity[self._embedded].mean()), deviation=float(similarity[self._embedded].std())
        )
        candidates = Candidates.of([self._candidate(i, similarity, words) for i in sorted(chosen)])
        ranked = rank(candidates, reading=_timeless(reading), background=background, now=now, limit=LIMIT)
        return [each.id for each in ranked]

    def _chosen(self, similarity: npt.NDArray[Any], words: npt.NDArray[Any]) -> set[int]:
        """Return the nearest by meaning, the best by words, and the turns beside them."""
        kept = max(SEEDS, LIMIT)
        near = sorted(np.flatnonzero(self._embedded), key=lambda i: (-similarity[i], self._rows[i][0]))[:kept]
        said = sorted(np.flatnonzero(words > 0), key=lambda i: (-words[i], self._rows[i][0]))[:kept]
        found = {int(i) for i in (*near, *said)}
        places = {(row[3], row[4]): i for i, row in enumerate(self._rows) if row[3]}
        beside = {
            places[(self._rows[i][3], self._rows[i][4] + step)]
            for i in found
            for step in range(-REACH, REACH + 1)
            if (self._rows[i][3], self._rows[i][4] + step) in places
        }
        return found | beside

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


def _timeless(reading: Reading) -> Reading:
    # The synthetic questions name no time.
    assert reading.span is None, reading.span
    return reading


def _halved(vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return vector.astype(np.float16).astype(np.float32)


def _weights(text: str | None) -> dict[int, float]:
    """Read a `sparsevec`."""
    if not text:
        return {}
    inside = text[1 : text.index("}")]
    return {
        int(place): float(weight)
        for place, _, weight in (pair.partition(":") for pair in inside.split(",") if pair)
    }
