"""Memories that actions create."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from arbor.heartbeat.decision import Decision
from arbor.heartbeat.needs import Placing
from arbor.heartbeat.params.memory import ArtifactKind
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.note_sources import with_source_of_conclusion, with_source_of_note
from arbor.ids import read_id
from arbor.memory.importance import appraise, at_least
from arbor.memory.recall.recall_request import RecallFilter
from arbor.memory.trust import Evidence
from arbor.memory.values import MemoryType, NewMemory, Retention
from arbor.values import replace

#: The importance of insights and artifacts: above that of notes.
INSIGHT_IMPORTANCE = 0.7
ARTIFACT_IMPORTANCE = 0.7


#: Parameters of `remember` that become the detail of the memory.
_DETAIL_PARAMS = ("steps", "context", "pattern")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryDraft:
    """A new memory, the verb that reports it, and for a conclusion the ids of the memories it rests on."""

    memory: NewMemory
    verb: str
    is_conclusion: bool = False
    materials: Sequence[str] = ()

    def with_source(self, situation: Situation, materials: Iterable[Evidence]) -> NewMemory:
        """Return the memory with its source and trust."""
        if self.is_conclusion:
            return with_source_of_conclusion(self.memory, situation=situation, materials=materials)
        return with_source_of_note(self.memory, situation=situation)


def _build_remembered(heartbeat: HeartbeatState, decision: Decision) -> MemoryDraft:
    params = decision.params
    memory = NewMemory(
        content=params["content"],
        type=MemoryType(params["type"]),
        importance=params["importance"],
        occurred_at=heartbeat.now,
        source=heartbeat.source,
        detail={name: value for name in _DETAIL_PARAMS if (value := params.get(name))},
    )
    # The agent chose to remember the text, so its retention is lasting, except for errors.
    return MemoryDraft(memory=lasting(heartbeat, memory, unless={Retention.ERROR}), verb="kept")


def _build_insight(heartbeat: HeartbeatState, decision: Decision) -> MemoryDraft:
    memory = NewMemory(
        content=decision.params["insight"],
        type=MemoryType.SEMANTIC,
        importance=INSIGHT_IMPORTANCE,
        occurred_at=heartbeat.now,
        source=heartbeat.source,
        detail={"focus": decision.params["focus"]},
    )
    return MemoryDraft(
        memory=memory, verb="noticed", is_conclusion=True, materials=decision.params["rests_on"]
    )


def _build_artifact(heartbeat: HeartbeatState, decision: Decision) -> MemoryDraft:
    params = decision.params
    creative = params["kind"] == ArtifactKind.CREATIVE
    memory = NewMemory(
        content=params["content"],
        # A conclusion is a fact; an invention is an event.
        type=MemoryType.EPISODIC if creative else MemoryType.SEMANTIC,
        importance=ARTIFACT_IMPORTANCE,
        occurred_at=heartbeat.now,
        source=heartbeat.source,
        detail={"topic": params["topic"], "artifact": params["kind"]},
    )
    return MemoryDraft(
        memory=lasting(heartbeat, memory),
        verb=f"made a {params['kind']}",
        is_conclusion=True,
        materials=params["materials"],
    )


MEMORY_BUILDERS: Mapping[str, Callable[[HeartbeatState, Decision], MemoryDraft]] = {
    "remember": _build_remembered,
    "reflect": _build_insight,
    "synthesize": _build_artifact,
}


def lasting(heartbeat: HeartbeatState, memory: NewMemory, *, unless: Collection[Retention] = ()) -> NewMemory:
    """Return a memory with at least lasting retention; one that is given, or appraised as one of `unless`, is unchanged."""
    if memory.retention is not None:
        return memory
    appraisal = appraise(memory.content, role=memory.role, type=memory.type, lists=heartbeat.rules.word_lists)
    return replace(memory, retention=at_least(appraisal.retention, Retention.LASTING, unless=unless))


def placing_need(heartbeat: HeartbeatState, *memories: NewMemory) -> Placing:
    """Return the need to place memories, with vectors for all of them or none."""
    return Placing(
        memories=memories,
        vectors=vectors_of([memory.content for memory in memories], heartbeat.vectors),
        model=heartbeat.embedding_model,
    )


def vectors_of(texts: Sequence[str], known: Mapping[str, Sequence[float]]) -> npt.NDArray[np.float32] | None:
    """Return the vectors of all texts, or None if one is missing: maintenance embeds the others."""
    if any(text not in known for text in texts):
        return None
    return np.asarray([known[text] for text in texts], dtype=np.float32)


def recall_filter(params: Mapping[str, Any], base: RecallFilter) -> RecallFilter:
    """Return the filter of a recall from the action's parameters."""
    since, until = (
        datetime.fromisoformat(params[name]) if params.get(name) else None for name in ("since", "until")
    )
    types = frozenset(MemoryType(name) for name in params.get("types", ()))
    # A decision in an older checkpoint has the second name of the cluster.
    concept, cluster = params.get("concept") or None, params.get("cluster") or params.get("theme") or None
    return replace(
        base,
        types=types,
        since=since,
        until=until,
        concept=read_id(concept) or concept,
        cluster=read_id(cluster) or cluster,
        episode=read_id(params.get("episode") or None),
    )


#: Actions that create memories.
LEARNING_ACTIONS = frozenset({"remember", "reflect", "synthesize", "inquire_shallow", "inquire_deep"})
