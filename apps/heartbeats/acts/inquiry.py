"""Inquiries: begun when the agent acts, carried on by the node `work`, which waits for the web and for models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.heartbeats.acts.desk import GLIMPSE, Desk, answer
from apps.memories.services.remember import store
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.learning import OWN_CONCLUSION_TRUST
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.results import ActionOutcome, ActionResult
from arbor.memory.details import SemanticDetail
from arbor.memory.trust import REFERENCE_LENGTH, Source, semantic_trust
from arbor.memory.values import MemoryType, NewMemory
from arbor.web.answers import Answer
from arbor.web.plan import Depth

#: How deep each of the slow actions goes.
DEPTHS = {"inquire_shallow": Depth.SHALLOW, "inquire_deep": Depth.DEEP}
#: A page on the web, whoever wrote it; and the most that all of them together bear out, below what the agent concludes
#: itself: pages copy each other. Ours.
WEB_TRUST = 0.4
MOST_WEB_TRUST = OWN_CONCLUSION_TRUST - 0.1
#: What took work to find out matters more than what was merely noted, the deep more than the shallow. Ours.
_IMPORTANCE = {Depth.SHALLOW: 0.6, Depth.DEEP: 0.7}


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What an inquiry ended with: the answer, the pages it was made from [{url, title}], what failed on the way."""

    question: str
    depth: Depth
    answer: Answer
    pages: Sequence[dict[str, str]]
    failures: Sequence[str]
    #: What was said of the answer.
    note: str = ""
    #: A deep inquiry's answer that nobody could judge is only part of what was wanted.
    appraised: bool = True

    @property
    def cited(self) -> list[dict[str, str]]:
        """Return the pages that the answer rests on."""
        return [self.pages[place] for place in self.answer.sources]


def inquire(_: Desk, decision: Decision) -> ActionResult:
    """Begin an inquiry: what comes of it is known when `work` has done it."""
    return answer(decision, ActionOutcome.UNKNOWN, f"looking up {decision.params['question']!r}")


def pending_work(decisions: Sequence[Decision], results: Sequence[ActionResult]) -> list[dict[str, Any]]:
    """Return the inquiries that have begun, as JSON: {place, question, queries, depth}; `place` is among the results."""
    return [
        {
            "place": place,
            "question": decision.params["question"],
            "queries": decision.params["queries"],
            "depth": DEPTHS[decision.action].value,
        }
        for place, (decision, result) in enumerate(zip(decisions, results, strict=True))
        if decision.action in DEPTHS and decision.runs and result.outcome is ActionOutcome.UNKNOWN
    ]


def found_out(desk: Desk, began: ActionResult, found: Found) -> ActionResult:
    """Keep the answer, if it is worth it, and return it as something to read. A deep one is always kept."""
    said = found.answer.text
    read = f"{len(found.pages)} {'page' if len(found.pages) == 1 else 'pages'}"
    if not said:
        summary = f"{read} on {found.question!r} do not answer it"
        return began.model_copy(
            update={"outcome": ActionOutcome.PARTIAL, "summary": summary, "brought": summary}
        )
    kept: list[str] = []
    if found.depth is Depth.DEEP or found.answer.worth_keeping:
        # Not embedded here, for its text is known only now: upkeep embeds it, and until then its words find it.
        stored = store(agent_id=desk.agent_id, memories=[_memory(desk, found)], vectors=None)
        kept = [str(each) for each in stored.ids]
    return began.model_copy(
        update={
            "outcome": ActionOutcome.SUCCESS if found.appraised else ActionOutcome.PARTIAL,
            "summary": f"found out about {found.question!r} from {read}: {clip(said, GLIMPSE)}",
            "memory_ids": kept,
            "brought": _told(found),
        }
    )


def _memory(desk: Desk, found: Found) -> NewMemory:
    sources = tuple(
        Source(kind="url", reference=page["url"][:REFERENCE_LENGTH], trust=WEB_TRUST, observed_at=desk.now)
        for page in found.cited
    )
    confidence = found.answer.confidence
    detail = SemanticDetail(confidence=confidence, sources=sources, extra={"question": found.question})
    return NewMemory(
        content=f"{found.question} {found.answer.text}",
        type=MemoryType.SEMANTIC,
        importance=_IMPORTANCE[found.depth],
        occurred_at=desk.now,
        source=desk.source,
        trust=min(semantic_trust(confidence=confidence, sources=sources), MOST_WEB_TRUST),
        detail=detail.to_json(),
    )


def _told(found: Found) -> str:
    """Return what the agent reads: the answer, how sure it is, where it is from, what could not be read."""
    lines = [
        f"{found.question}",
        found.answer.text,
        f"Confidence {found.answer.confidence:.2f}{f' ({found.note})' if found.note else ''}. Sources:",
        *(f"- {page['title']} {page['url']}".strip() for page in found.cited),
    ]
    if found.failures:
        lines.append(f"Not read: {'; '.join(found.failures)}"[:600])
    return "\n".join(lines)
