"""Synthetic minds: memories with the words, vectors and statistics of real ones, loaded in bulk."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import batched
from typing import Any
from uuid import UUID

import psycopg
from django.conf import settings

from apps.memories.services.embedding.embedding import embedder
from apps.memories.services.embedding.literals import halfvec_texts, sparsevec_text
from apps.memories.services.store.term_counts import ALL_MEMORIES
from arbor.memory.content import content_hash
from arbor.memory.text.lexical import document_vector
from bench.support.figures import print_progress
from bench.support.population import BenchAgent

SPEAKERS = ("Ada", "Bela", "Caro", "Dmitri")
#: Turns of one conversation.
SESSION_TURNS = 30
_VOCABULARY_SIZE = 4000
#: Indexed words per turn, as in LoCoMo's 2,960 turns: median 12, ninth decile 24, maximum 41.
_MEDIAN_WORDS = 12
_WORDS_DEVIATION = 0.54
_MAX_WORDS = 41
_CHUNK = 2000
#: The number of reports of progress.
_REPORTS = 10
_ONSETS = (
    "b",
    "br",
    "c",
    "cl",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
)
_VOWELS = ("a", "e", "i", "o", "u", "ea", "ou")
_CODAS = ("", "n", "r", "s", "t", "l", "m", "nd", "st", "ck")
# fmt: off
_FUNCTION_WORDS = (
    "the", "a", "to", "of", "and", "in", "that", "it", "was", "for", "on", "with", "as", "at", "by", "from", "this",
    "have", "I", "you", "we", "they", "not", "but", "what", "all", "were", "when", "there", "can", "more", "if",
    "about", "which", "their", "will", "some", "could", "them", "other", "than", "then", "only", "my", "over", "did",
)
# fmt: on


@dataclass(frozen=True, kw_only=True)
class SyntheticTurn:
    """One memory of the synthetic conversations."""

    content: str
    role: str
    session: str
    position: int
    occurred_at: datetime


def make_turns(count: int, *, seed: int = 1) -> list[SyntheticTurn]:
    """Return a number of turns: sentences over a vocabulary with realistic word frequencies."""
    rng = random.Random(seed)
    words = _vocabulary(rng)
    weights = [1 / (rank + 3) for rank in range(len(words))]
    started = datetime(2024, 1, 1, tzinfo=UTC)
    turns = []
    for number in range(count):
        drawn = rng.choices(words, weights, k=_length(rng))
        function_words = rng.choices(_FUNCTION_WORDS, k=len(drawn) // 2)
        sentence = [*drawn, *function_words]
        rng.shuffle(sentence)
        turns.append(
            SyntheticTurn(
                content=" ".join(sentence).capitalize() + rng.choice("...?"),
                role=rng.choice(SPEAKERS),
                session=f"talk-{number // SESSION_TURNS}",
                position=number % SESSION_TURNS,
                occurred_at=started + timedelta(minutes=20 * number),
            )
        )
    return turns


def _length(rng: random.Random) -> int:
    return min(_MAX_WORDS, max(1, round(rng.lognormvariate(math.log(_MEDIAN_WORDS), _WORDS_DEVIATION))))


def make_questions(turns: Sequence[SyntheticTurn], count: int, *, seed: int = 2) -> list[str]:
    """Return questions: a few words of a turn in random order, sometimes with the speaker."""
    rng = random.Random(seed)
    asked = []
    for turn in rng.choices(turns, k=count):
        words = turn.content.rstrip(".?").split()
        picked = rng.sample(words, min(len(words), rng.randint(4, 8)))
        asked.append(" ".join([*([turn.role] if rng.random() < 0.5 else []), "said", *picked]) + "?")
    return asked


def _vocabulary(rng: random.Random) -> list[str]:
    vocabulary: dict[str, None] = {}
    while len(vocabulary) < _VOCABULARY_SIZE:
        syllables = [
            rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(rng.randint(1, 3))
        ]
        vocabulary["".join(syllables)] = None
    return list(vocabulary)


def load(
    database: psycopg.Connection[Any], turns: Sequence[SyntheticTurn], agents: Sequence[BenchAgent]
) -> None:
    """Store these memories for each agent, interleaved by time; the index is complete and vacuumed afterwards."""
    database.execute("CREATE TEMP TABLE loaded (LIKE memories_memory INCLUDING DEFAULTS)")
    counts: Counter[int] = Counter({ALL_MEMORIES: len(turns)})
    print_progress(f"embedding {len(turns)} memories")
    for start in range(0, len(turns), _CHUNK):
        counts.update(_copy(database, turns[start : start + _CHUNK], agents[0]))
    print_progress(f"copying them for {len(agents)} agents")
    names = [
        name
        for (name,) in database.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'memories_memory'::regclass AND attnum > 0"
            " AND NOT attisdropped AND attname NOT IN ('tenant_id', 'agent_id', 'id')"
        )
    ]
    ids = [agent.agent_id for agent in agents]
    copied = ", ".join(f"loaded.{name}" for name in names)
    for number, part in enumerate(batched(turns, max(1, len(turns) // _REPORTS), strict=False)):
        print_progress(f"  {number * len(part) * len(agents)} of {len(turns) * len(agents)}")
        database.execute(
            f"INSERT INTO memories_memory (tenant_id, agent_id, id, {', '.join(names)})"
            f" SELECT a.tenant_id, a.id, gen_random_uuid(), {copied} FROM loaded, agents_agent a"
            " WHERE a.id = ANY(%s) AND loaded.occurred_at BETWEEN %s AND %s ORDER BY loaded.occurred_at, a.id",
            [ids, part[0].occurred_at, part[-1].occurred_at],
        )
    database.execute(
        "INSERT INTO memories_term (tenant_id, agent_id, term, memories)"
        " SELECT a.tenant_id, a.id, term, memories FROM unnest(%s::int[], %s::int[]) AS t (term, memories), agents_agent a"
        " WHERE a.id = ANY(%s) ON CONFLICT (tenant_id, agent_id, term) DO UPDATE"
        " SET memories = memories_term.memories + EXCLUDED.memories",
        [list(counts), list(counts.values()), ids],
    )
    database.execute(
        "INSERT INTO memories_mind (tenant_id, agent_id, embedding_model, embedding_dimension)"
        " SELECT tenant_id, id, %s, %s FROM agents_agent WHERE id = ANY(%s) ON CONFLICT DO NOTHING",
        [settings.ARBOR_EMBEDDING_MODEL, settings.ARBOR_EMBEDDING_DIMENSION, ids],
    )
    database.execute("DROP TABLE loaded")
    print_progress("vacuuming")
    vacuum(database)


def vacuum(database: psycopg.Connection[Any]) -> None:
    """Bring the tables of memories to the state after autovacuum: all pages marked visible, statistics up to date."""
    # Pages can only be marked visible when their commits are on disk, which a later synchronous commit ensures.
    database.execute("SET synchronous_commit = on")
    database.execute("CREATE TABLE flushed ()")
    database.execute("DROP TABLE flushed")
    database.execute("VACUUM (ANALYZE) memories_memory, memories_term, memories_memoryaccess")


def _copy(
    database: psycopg.Connection[Any], turns: Sequence[SyntheticTurn], owner: BenchAgent
) -> Counter[int]:
    words = [document_vector(turn.content, speaker=turn.role) for turn in turns]
    vectors = halfvec_texts(embedder().embed([turn.content for turn in turns]))
    columns = (
        "tenant_id, agent_id, id, type, status, content, content_hash, importance, decay_rate, trust,"
        " emotional_valence, session, position, role, source, detail, occurred_at, created_at, embedding,"
        " embedding_model, lexical, retention, sequence"
    )
    with database.cursor() as cursor, cursor.copy(f"COPY loaded ({columns}) FROM STDIN") as copy:
        for turn, terms, vector in zip(turns, words, vectors, strict=True):
            copy.write_row(
                (
                    owner.tenant_id,
                    owner.agent_id,
                    UUID(int=0),
                    "episodic",
                    "active",
                    turn.content,
                    content_hash(turn.content),
                    0.5,
                    0.01,
                    1.0,
                    0.0,
                    turn.session,
                    turn.position,
                    turn.role,
                    "bench",
                    json.dumps({}),
                    turn.occurred_at,
                    turn.occurred_at,
                    vector,
                    embedder().model,
                    sparsevec_text(terms),
                    "lasting",
                    0,
                )
            )
    return Counter(term for terms in words for term in terms)


def vector_length() -> int:
    """Return the length of the installation's vectors."""
    length: int = settings.ARBOR_EMBEDDING_DIMENSION
    return length
