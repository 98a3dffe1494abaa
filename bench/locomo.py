"""Evidence recall on LoCoMo's dialogs: one agent for each, its questions asked of its memory, no language model.

Over the questions of categories 1 to 4 that name evidence, the mean share of the evidence turns among the first k
recalled.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.memories.models import Memory
from apps.memories.services.ingest import ingest
from apps.memories.services.recall import recall
from apps.tenants.scope import tenant_transaction
from bench.figures import quantile
from bench.installation import Installation
from bench.population import ACTOR, Inhabitant, populate
from bench.progress import say

#: Multi-hop, temporal, open, single-hop; 5, adversarial, has no evidence to find.
CATEGORIES = frozenset({1, 2, 3, 4})
DEPTHS = (5, 10, 20)
_EVIDENCE = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a dialog, and the turns that answer it."""

    text: str
    evidence: frozenset[str]


def measure(_place: Installation, *, data: Path) -> dict[str, Any]:
    """Return evidence recall at 5, 10 and 20, over all questions of all dialogs."""
    dialogs = json.loads(data.read_text(encoding="utf-8"))
    agents = populate(agents=len(dialogs), tenants=1, template="Scout")
    shares: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    ms: list[float] = []
    turns, ingest_s = 0, 0.0
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
        asked = list(questions(dialog))
        say(f"{dialog['sample_id']}: asking {len(asked)} questions")
        names = _source_ids(agent)
        for question in asked:
            found, took = _recalled(agent, question.text, names)
            ms.append(took)
            for depth in DEPTHS:
                hits = len(question.evidence.intersection(found[:depth]))
                shares[depth].append(hits / len(question.evidence))
    return {
        "dialogs": len(dialogs),
        "turns": turns,
        "questions": len(ms),
        **{f"recall_at_{depth}": round(sum(each) / max(len(each), 1), 4) for depth, each in shares.items()},
        "ms_p50": quantile(ms, 0.5),
        "ms_p95": quantile(ms, 0.95),
        "turns_per_s": round(turns / ingest_s),
    }


def questions(dialog: dict[str, Any]) -> Iterator[Question]:
    """Yield a dialog's questions that count: of the right category, with evidence."""
    for entry in dialog["qa"]:
        evidence = frozenset(_EVIDENCE.findall(" ".join(map(str, entry.get("evidence") or []))))
        if entry.get("category") in CATEGORIES and evidence:
            yield Question(text=str(entry["question"]), evidence=evidence)


def _source_ids(agent: Inhabitant) -> dict[Any, str]:
    """Return what the dialog calls each memory."""
    with tenant_transaction(agent.tenant_id):
        return dict(Memory.objects.filter(agent_id=agent.agent_id).values_list("id", "detail__source_id"))


def _recalled(agent: Inhabitant, text: str, names: dict[Any, str]) -> tuple[list[str], float]:
    started = time.perf_counter()
    found = recall(tenant_id=agent.tenant_id, agent_id=agent.agent_id, text=text, limit=max(DEPTHS))
    return [names[each.id] for each in found], (time.perf_counter() - started) * 1000
