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
from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, Situation
from arbor.heartbeat.state import Beat
from arbor.memory.details import SemanticDetail
from arbor.memory.english import STOP_WORDS
from arbor.memory.importance import appraise, at_least
from arbor.memory.lexical import term_of, words_of
from arbor.memory.recall_request import RecallFilter
from arbor.memory.trust import Source, cap, semantic_trust
from arbor.memory.values import MemoryType, NewMemory, Retention
from arbor.selves.trust import UNMET
from arbor.values import replace

#: The importance of insights and artifacts: above that of notes.
INSIGHT_IMPORTANCE = 0.7
ARTIFACT_IMPORTANCE = 0.7


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


def placing(heartbeat: Beat, *memories: NewMemory) -> Placing:
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
    return replace(base, types=types, since=since, until=until)


#: Trust in the agent's own conclusions: below 1, because a model can err.
OWN_CONCLUSION_TRUST = 0.8
#: Trust in a user's messages: above `DEFAULT_SOURCE_TRUST`, because the source is known.
USER_TRUST = 0.7
#: The least share of a text's terms in a message that makes the message its source.
_REPEATED_SHARE = 0.5

#: Actions that create memories.
LEARNING_ACTIONS = frozenset({"remember", "reflect", "synthesize", "inquire_shallow", "inquire_deep"})


def learned(memory: NewMemory, *, situation: Situation, concluded: bool = False) -> NewMemory:
    """Return a memory with its source and the trust that its source allows (`trust.cap`).

    The source is a user or peer whose message has most of the memory's terms; otherwise, or if `concluded`, the agent
    itself. A fact has its source in its detail, without a time, so that repeated notes store equal details.
    """
    source = _own_source(situation)
    if not concluded and _repeats(memory.content, _messages(situation)):
        source = Source(kind="user", reference="user", trust=USER_TRUST)
    elif not concluded and (peer := _peer_source(memory.content, situation)) is not None:
        source = peer
    if memory.type is not MemoryType.SEMANTIC:
        return replace(memory, trust=cap([source]))
    detail = SemanticDetail(sources=(source,), extra=memory.detail)
    return replace(
        memory,
        trust=semantic_trust(confidence=detail.confidence, sources=detail.sources),
        detail=detail.to_json(),
    )


def _own_source(situation: Situation) -> Source:
    return Source(kind="heartbeat", reference=f"agent:{situation.agent_id}", trust=OWN_CONCLUSION_TRUST)


def _peer_source(text: str, situation: Situation) -> Source | None:
    """Return the peer whose message the text repeats, with its trust (seed 003, 10.3), at most that of a user."""
    trusted = {peer.name: peer.trust for peer in situation.peers}
    for percept in situation.percepts:
        if percept.kind == PEER_MESSAGE and percept.peer and _repeats(text, [percept.content]):
            trust = min(trusted.get(percept.peer, UNMET), USER_TRUST)
            return Source(kind="agent", reference=f"agent:{percept.peer_id}", trust=trust)
    return None


def _messages(situation: Situation) -> list[str]:
    return [percept.content for percept in situation.percepts if percept.kind == USER_MESSAGE]


def _repeats(text: str, messages: Iterable[str]) -> bool:
    terms = _terms(text)
    received = {term for message in messages for term in _terms(message)}
    return bool(terms) and len(terms & received) >= _REPEATED_SHARE * len(terms)


def _terms(text: str) -> set[str]:
    return {term_of(word) for word in words_of(text) if word not in STOP_WORDS}
