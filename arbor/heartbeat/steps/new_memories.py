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
from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, PerceptView, Situation
from arbor.heartbeat.sources import own_source, source_of
from arbor.heartbeat.state import Beat
from arbor.ids import read_id
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.english import STOP_WORDS
from arbor.memory.importance import appraise, at_least
from arbor.memory.lexical import term_of, words_of
from arbor.memory.recall_request import RecallFilter
from arbor.memory.trust import Source, cap
from arbor.memory.values import MemoryType, NewMemory, Retention
from arbor.values import replace

#: The importance of insights and artifacts: above that of notes.
INSIGHT_IMPORTANCE = 0.7
ARTIFACT_IMPORTANCE = 0.7


#: Parameters of `remember` that become the detail of the memory.
_DETAILED = ("steps", "context", "pattern")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryDraft:
    """A new memory, the verb of its result, and the ids of its sources."""

    memory: NewMemory
    verb: str
    materials: Sequence[str] = ()


def _build_remembered(heartbeat: Beat, decision: Decision) -> MemoryDraft:
    params = decision.params
    memory = NewMemory(
        content=params["content"],
        type=MemoryType(params["type"]),
        importance=params["importance"],
        occurred_at=heartbeat.now,
        source=heartbeat.source,
        detail={name: value for name in _DETAILED if (value := params.get(name))},
    )
    memory = learned(memory, situation=heartbeat.situation)
    # The agent chose to remember the text, so its retention is lasting, except for errors.
    return MemoryDraft(memory=lasting(heartbeat, memory, but={Retention.ERROR}), verb="kept")


def _build_insight(heartbeat: Beat, decision: Decision) -> MemoryDraft:
    memory = NewMemory(
        content=decision.params["insight"],
        type=MemoryType.SEMANTIC,
        importance=INSIGHT_IMPORTANCE,
        occurred_at=heartbeat.now,
        source=heartbeat.source,
        detail={"focus": decision.params["focus"]},
    )
    memory = learned(memory, situation=heartbeat.situation, concluded=True)
    return MemoryDraft(memory=memory, verb="noticed", materials=decision.params["rests_on"])


def _build_artifact(heartbeat: Beat, decision: Decision) -> MemoryDraft:
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
    memory = lasting(heartbeat, learned(memory, situation=heartbeat.situation, concluded=True))
    return MemoryDraft(memory=memory, verb=f"made a {params['kind']}", materials=params["materials"])


MEMORY_BUILDERS: Mapping[str, Callable[[Beat, Decision], MemoryDraft]] = {
    "remember": _build_remembered,
    "reflect": _build_insight,
    "synthesize": _build_artifact,
}


def lasting(heartbeat: Beat, memory: NewMemory, *, but: Collection[Retention] = ()) -> NewMemory:
    """Return a memory with at least lasting retention; a given one, or an appraised one in `but`, is unchanged."""
    if memory.retention is not None:
        return memory
    appraisal = appraise(memory.content, role=memory.role, type=memory.type, lists=heartbeat.rules.word_lists)
    return replace(memory, retention=at_least(appraisal.retention, Retention.LASTING, but=but))


def placing_need(heartbeat: Beat, *memories: NewMemory) -> Placing:
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
    concept, cluster = (params.get(name) or None for name in ("concept", "theme"))
    return replace(
        base,
        types=types,
        since=since,
        until=until,
        concept=read_id(concept) or concept,
        cluster=read_id(cluster) or cluster,
        episode=read_id(params.get("episode") or None),
    )


#: The least share of a text's terms in a message that makes the message its source.
_REPEATED_SHARE = 0.5

#: Actions that create memories.
LEARNING_ACTIONS = frozenset({"remember", "reflect", "synthesize", "inquire_shallow", "inquire_deep"})


def learned(memory: NewMemory, *, situation: Situation, concluded: bool = False) -> NewMemory:
    """Return a memory with its source and the trust that its source allows (`trust.cap`).

    The source is the sender of a percept that has most of the memory's terms; otherwise, or if `concluded`, the agent
    itself. A fact has its source in its detail, beside those it has, without a time, so that repeated notes store equal details.
    """
    source = own_source(situation.agent_id)
    if not concluded and (sender := _sender(memory.content, situation)) is not None:
        source = sender
    if memory.type is not MemoryType.SEMANTIC:
        return replace(memory, trust=cap([source]))
    fact = read_detail(MemoryType.SEMANTIC, memory.detail)
    assert isinstance(fact, SemanticDetail)
    fact = fact.with_sources([source])
    return replace(memory, trust=fact.trust, detail=fact.to_json())


def _sender(text: str, situation: Situation) -> Source | None:
    """Return the source whose percepts the text repeats: users first, then peers, then what is no person."""
    senders: dict[tuple[int, str], list[PerceptView]] = {}
    for percept in situation.percepts:
        source = source_of(percept, situation.peers)
        senders.setdefault((_precedence(percept), source.key), []).append(percept)
    for _, percepts in sorted(senders.items(), key=lambda sender: sender[0][0]):
        if _repeats(text, [percept.content for percept in percepts]):
            return source_of(percepts[0], situation.peers)
    return None


def _precedence(percept: PerceptView) -> int:
    return (USER_MESSAGE, PEER_MESSAGE, percept.kind).index(percept.kind)


def _repeats(text: str, messages: Iterable[str]) -> bool:
    terms = _terms(text)
    received = {term for message in messages for term in _terms(message)}
    return bool(terms) and len(terms & received) >= _REPEATED_SHARE * len(terms)


def _terms(text: str) -> set[str]:
    return {term_of(word) for word in words_of(text) if word not in STOP_WORDS}
