"""Actions on the memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.heartbeats.acts.desk import GLIMPSE, Desk, answer, vectors_of
from apps.heartbeats.handlers.observe import BEATS_SESSION
from apps.memories.services.activation import note_recall
from apps.memories.services.appraisal import lasting
from apps.memories.services.graph import connect
from apps.memories.services.partial import on_the_tip_of_the_tongue
from apps.memories.services.provenance import derived_from, require_memories
from apps.memories.services.recall import recall_in_scope
from apps.memories.services.remember import store
from apps.selves.services.evidence import note_evidence
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.learning import learned
from arbor.heartbeat.params.memory import ArtifactKind
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.results import ActionOutcome, ActionResult
from arbor.heartbeat.sections.text import line
from arbor.memory.filters import RecallFilter
from arbor.memory.relations import NodeKind, Relation
from arbor.memory.retention import Retention
from arbor.memory.values import MemoryType, NewMemory, Recalled
from arbor.memory.walks import NOTE_LENGTH

#: Of each memory that is found, what the agent reads before it goes on.
READ_LENGTH = 600
#: A lesson the agent drew itself is worth more to it than a thing it merely noted.
INSIGHT_IMPORTANCE = 0.7
#: So is a work of its own. Ours.
ARTIFACT_IMPORTANCE = 0.7


def recall(desk: Desk, decision: Decision) -> ActionResult:
    """Search the memory; what is found is there for the next look."""
    query = decision.params["query"]
    found = recall_in_scope(
        agent_id=desk.agent_id,
        text=query,
        vector=desk.vectors.get(query),
        model=desk.model,
        limit=decision.params["limit"],
        # What was said and learned, not the beats that went over it: those would echo from beat to beat.
        without_session=BEATS_SESSION,
        only=_only(decision.params),
    )
    note_recall(agent_id=desk.agent_id, recalled={memory.id: memory.score for memory in found})
    if not found:
        return answer(decision, ActionOutcome.PARTIAL, f"nothing came to mind about {query!r}")
    themes = on_the_tip_of_the_tongue(
        agent_id=desk.agent_id,
        recalled=found,
        vector=desk.vectors.get(query),
        model=desk.model,
        without_session=BEATS_SESSION,
    )
    glimpses = "; ".join(clip(memory.content, GLIMPSE) for memory in found[:3])
    unclear = f"; on the tip of the tongue: theme {'; '.join(each.name for each in themes)}"
    return answer(
        decision,
        ActionOutcome.SUCCESS,
        f"{len(found)} memories about {query!r}: {glimpses}{unclear if themes else ''}",
        [memory.id for memory in found],
        brought="\n".join(_told(memory) for memory in found),
    )


def _only(params: Mapping[str, Any]) -> RecallFilter:
    """Return what a memory must be to be recalled, from the action's parameters."""
    since, until = (
        datetime.fromisoformat(params[name]) if params.get(name) else None for name in ("since", "until")
    )
    return RecallFilter(
        types=frozenset(MemoryType(each) for each in params.get("types", ())), since=since, until=until
    )


def _told(memory: Recalled) -> str:
    """Return a memory as the agent reads it before its beat goes on."""
    said = f", from {memory.role}" if memory.role else ""
    return f"[{memory.id}] {memory.occurred_at:%Y-%m-%d %H:%M}, {memory.type}{said}: {line(memory.content, READ_LENGTH)}"


def remember(desk: Desk, decision: Decision) -> ActionResult:
    """Keep what the agent chose to keep."""
    params = decision.params
    memory = NewMemory(
        content=params["content"],
        type=MemoryType(params["type"]),
        importance=params["importance"],
        occurred_at=desk.now,
        source=desk.source,
    )
    memory = learned(memory, situation=desk.situation)
    # What the agent chose to keep lasts; that something failed is soon stale.
    return keep_what_is_made(desk, decision, lasting(memory, but={Retention.ERROR}), "kept")


def reflect(desk: Desk, decision: Decision) -> ActionResult:
    """Keep what the agent noticed."""
    memory = NewMemory(
        content=decision.params["insight"],
        type=MemoryType.SEMANTIC,
        importance=INSIGHT_IMPORTANCE,
        occurred_at=desk.now,
        source=desk.source,
        detail={"focus": decision.params["focus"]},
    )
    memory = learned(memory, situation=desk.situation, concluded=True)
    grounds = require_memories(agent_id=desk.agent_id, named=decision.params["rests_on"])
    return keep_what_is_made(desk, decision, memory, "noticed", made_from=grounds)


def synthesize(desk: Desk, decision: Decision) -> ActionResult:
    """Keep what the agent made, tied to what it made it from."""
    params = decision.params
    creative = params["kind"] == ArtifactKind.CREATIVE
    memory = NewMemory(
        content=params["content"],
        # What was concluded is so; what was invented happened.
        type=MemoryType.EPISODIC if creative else MemoryType.SEMANTIC,
        importance=ARTIFACT_IMPORTANCE,
        occurred_at=desk.now,
        source=desk.source,
        detail={"topic": params["topic"], "artifact": params["kind"]},
    )
    materials = require_memories(agent_id=desk.agent_id, named=params["materials"])
    memory = lasting(learned(memory, situation=desk.situation, concluded=True), but=set())
    return keep_what_is_made(desk, decision, memory, f"made a {params['kind']}", made_from=materials)


def connect_things(desk: Desk, decision: Decision) -> ActionResult:
    """Tie two things together."""
    params = decision.params
    made = connect(
        agent_id=desk.agent_id,
        source_id=params["from_id"],
        target_id=params["to_id"],
        relation=Relation(params["relation"]),
        note=decision.reasoning[:NOTE_LENGTH],
        origin=desk.source,
    )
    memories = [end.id for end in (made.source, made.target) if end.kind is NodeKind.MEMORY]
    proposed = note_evidence(agent_id=desk.agent_id, tie=made, source=desk.source, now=desk.now)
    said = f"tied together as {made.relation}{f'; {proposed}' if proposed else ''}"
    return answer(decision, ActionOutcome.SUCCESS, said, memories)


def keep_what_is_made(
    desk: Desk, decision: Decision, memory: NewMemory, verb: str, *, made_from: Sequence[UUID] = ()
) -> ActionResult:
    """Store a memory, tied to those it is made from, if any."""
    stored = store(
        agent_id=desk.agent_id,
        memories=[memory],
        vectors=vectors_of([memory.content], desk.vectors),
        model=desk.model,
    )
    derived_from(agent_id=desk.agent_id, memory_id=stored.ids[0], materials=made_from, origin=desk.source)
    if not stored.stored:
        return answer(decision, ActionOutcome.PARTIAL, "that was known already", list(stored.ids))
    return answer(
        decision, ActionOutcome.SUCCESS, f"{verb}: {clip(memory.content, GLIMPSE)}", list(stored.ids)
    )
