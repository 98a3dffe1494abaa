"""Evidence recall on LoCoMo's dialogs: one agent per dialog answers questions from memory, without a language model.

Over the questions of categories 1 to 4 that name evidence, the mean share of the evidence turns among the first k
recalled.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings

from apps.memories.models import Memory
from apps.memories.services.embedding.embedding import embed_query
from apps.memories.services.graph.neighborhoods import refresh_batch
from apps.memories.services.graph.relations import connect
from apps.memories.services.recall.recaller import Recaller, find_candidates, recall
from apps.memories.services.store.ingest import ingest
from apps.tenants.scope import tenant_transaction
from arbor.memory.recall.candidates import ids_of_halves
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.relations import Relation
from bench.support.database import connect_as_superuser
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation
from bench.support.population import ACTOR, BenchAgent, populate
from bench.tuning import JudgedQuestion, tune

#: Multi-hop, temporal, open, single-hop; 5, adversarial, has no evidence to find.
CATEGORIES = frozenset({1, 2, 3, 4})
DEPTHS = (5, 10, 20)
_EVIDENCE = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a dialog, and the turns that answer it."""

    text: str
    evidence: frozenset[str]


def measure(
    installation: Installation, *, data: Path, tuned: bool = False, related: bool = False
) -> dict[str, Any]:
    """Return evidence recall at 5, 10 and 20, over all questions of all dialogs.

    With `tuned`, also with each weight changed. With `related`, the turns of each question's evidence are related before, which
    no agent could do: an upper bound of the gain by relations.
    """
    dialogs = json.loads(data.read_text(encoding="utf-8"))
    agents = populate(agents=len(dialogs), tenants=1, templates=["Scout"])
    shares: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    ms: list[float] = []
    turns, ingest_s = 0, 0.0
    judged: list[JudgedQuestion] = []
    for dialog, agent in zip(dialogs, agents, strict=True):
        started = time.perf_counter()
        turns += ingest(
            tenant_id=agent.tenant_id,
            agent_id=agent.agent_id,
            path=data,
            actor=ACTOR,
            sample=dialog["sample_id"],
        ).stored
        ingest_s += time.perf_counter() - started
        dialog_questions = list(questions(dialog))
        names = _source_ids(agent)
        if related:
            _relate(agent, dialog_questions, names)
        while refresh_batch(agent.tenant_id, agent.agent_id):
            pass
        print_progress(f"{dialog['sample_id']}: asking {len(dialog_questions)} questions")
        for question in dialog_questions:
            found, took = _time_recall(agent, question.text, names)
            ms.append(took)
            for depth in DEPTHS:
                hits = len(question.evidence.intersection(found[:depth]))
                shares[depth].append(hits / len(question.evidence))
        if tuned:
            judged += [_judge_question(agent, question, names) for question in dialog_questions]
    if tuned:
        print_progress("ranking with every weight changed")
    return {
        "dialogs": len(dialogs),
        "turns": turns,
        "questions": len(ms),
        **{
            f"recall_at_{depth}": round(sum(values) / max(len(values), 1), 4)
            for depth, values in shares.items()
        },
        "ms_p50": quantile(ms, 0.5),
        "ms_p95": quantile(ms, 0.95),
        "turns_per_s": round(turns / ingest_s),
        "index_bytes_per_memory": round(_index_bytes(installation) / max(turns, 1)),
        **({"tuning": tune(judged, depths=DEPTHS, weights=settings.ARBOR_RECALL_WEIGHTS)} if tuned else {}),
    }


def _index_bytes(installation: Installation) -> int:
    with connect_as_superuser(installation) as database:
        ((size,),) = database.execute("SELECT pg_relation_size('memories_memory_mind')").fetchall()
    return int(size)


def questions(dialog: dict[str, Any]) -> Iterator[Question]:
    """Yield the questions of a dialog that have evidence and are of the measured categories."""
    for entry in dialog["qa"]:
        evidence = frozenset(_EVIDENCE.findall(" ".join(map(str, entry.get("evidence") or []))))
        if entry.get("category") in CATEGORIES and evidence:
            yield Question(text=str(entry["question"]), evidence=evidence)


def _source_ids(agent: BenchAgent) -> dict[Any, str]:
    """Return the dialog's name of each memory, by memory id."""
    with tenant_transaction(agent.tenant_id):
        return dict(Memory.objects.filter(agent_id=agent.agent_id).values_list("id", "detail__source_id"))


def place_of(name: str) -> tuple[int, int]:
    """Return the place of a turn in its dialog, by its name such as `D1:10`: session and number."""
    session, number = name.removeprefix("D").split(":")
    return int(session), int(number)


def _relate(agent: BenchAgent, asked: Sequence[Question], names: dict[Any, str]) -> None:
    """Create a relation from each turn of a question's evidence to the next."""
    ids = {name: str(memory_id) for memory_id, name in names.items()}
    with tenant_transaction(agent.tenant_id):
        for question in asked:
            turn_ids = [ids[name] for name in sorted(question.evidence, key=place_of) if name in ids]
            for source, target in pairwise(turn_ids):
                connect(
                    agent_id=agent.agent_id, source_id=source, target_id=target, relation=Relation.ASSOCIATED
                )


def _time_recall(agent: BenchAgent, text: str, names: dict[Any, str]) -> tuple[list[str], float]:
    """Return the names of the recalled turns, the best first, and the duration in ms."""
    started = time.perf_counter()
    recalled = recall(
        tenant_id=agent.tenant_id,
        request=RecallRequest(agent_id=agent.agent_id, text=text, limit=max(DEPTHS)),
    )
    return [names[memory.id] for memory in recalled], (time.perf_counter() - started) * 1000


def _judge_question(agent: BenchAgent, question: Question, names: dict[Any, str]) -> JudgedQuestion:
    """Return a question with all candidates that recall ranks, and which of them are evidence."""
    now = datetime.now(UTC)
    with tenant_transaction(agent.tenant_id):
        (meaning,) = Recaller().meaning_texts([(agent.agent_id, question.text)])
    (vector,) = embed_query(tenant_id=agent.tenant_id, texts=[meaning])
    with tenant_transaction(agent.tenant_id):
        query, found = find_candidates(
            RecallRequest(
                agent_id=agent.agent_id,
                text=question.text,
                vector=vector.tolist(),
                limit=max(DEPTHS),
                now=now,
            )
        )
    hits = [names[memory_id] in question.evidence for memory_id in ids_of_halves(found.candidates.ids)]
    return JudgedQuestion(
        query=query, found=found, hits=np.array(hits, dtype=np.bool_), evidence=len(question.evidence)
    )
