"""Memories that a heartbeat creates, and their sources: a memory that repeats others' words is trusted as far as they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from arbor.authority.reflexes import INQUIRIES
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.params.memory import ArtifactKind
from arbor.heartbeat.situation import (
    PEER_MESSAGE,
    USER_MESSAGE,
    BufferItemView,
    MemoryView,
    PerceptView,
    Situation,
)
from arbor.heartbeat.sources import own_source, source_of
from arbor.heartbeat.state import HeartbeatState
from arbor.ids import read_id
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.importance import appraise, at_least
from arbor.memory.recall.recall_request import RecallFilter
from arbor.memory.text.lexical import STOP_WORDS, term_of, words_of
from arbor.memory.trust import OWN_ROLES, Evidence, Source, max_trust, reinforcement, sources_of
from arbor.memory.values import MemoryType, NewMemory, Retention
from arbor.values import replace

#: A message with at least this share of a note's terms is the note's source. A conclusion adds something of its own, so the
#: share of its terms must be higher.
_REPEATED_SHARE = 0.5
_ONLY_REPEATED_SHARE = 0.75
#: Actions that create memories.
LEARNING_ACTIONS = INQUIRIES | {"remember", "reflect", "synthesize"}
#: The importance of insights and artifacts: above that of notes.
INSIGHT_IMPORTANCE = 0.7
ARTIFACT_IMPORTANCE = 0.7
#: Parameters of `remember` that become the detail of the memory.
_DETAIL_PARAMS = ("steps", "context", "pattern")


def with_source_of_note(memory: NewMemory, *, situation: Situation) -> NewMemory:
    """Return a note with its source and the trust that its source allows (`arbor.memory.trust.max_trust`).

    The source is the sender of a percept that has most of the note's terms, else the speaker of a memory or buffer item
    in the situation that has most of them, else the agent itself. A fact stores its source in its detail, beside
    its other sources and without a time, so that repeated notes store equal details.
    """
    return _with_source(
        memory,
        _repeated_source(memory.content, situation, least=_REPEATED_SHARE) or own_source(situation.agent_id),
    )


def with_source_of_conclusion(
    memory: NewMemory, *, situation: Situation, materials: Iterable[Evidence] = ()
) -> NewMemory:
    """Return a conclusion of the agent, trusted no further than the memories it rests on, nor than what it repeats.

    Its source is the agent itself.
    """
    own = own_source(situation.agent_id)
    bounds = [own.trust]
    if found := sources_of(materials):
        bounds.append(reinforcement(found))
    repeated = _repeated_source(memory.content, situation, least=_ONLY_REPEATED_SHARE)
    if repeated is not None:
        bounds.append(repeated.trust)
    return _with_source(memory, replace(own, trust=_trust_of_further_source(memory, most=min(bounds))))


def _trust_of_further_source(memory: NewMemory, *, most: float) -> float:
    """Return the trust that a further source may have, so that the memory is trusted no further than `most`."""
    if memory.type is not MemoryType.SEMANTIC:
        return most
    known = reinforcement(_fact_of(memory).sources)
    # The same fact in other words is no further support.
    return 1.0 - (1.0 - most) / (1.0 - known) if known < most else 0.0


def _with_source(memory: NewMemory, source: Source) -> NewMemory:
    if memory.type is not MemoryType.SEMANTIC:
        return replace(memory, trust=max_trust([source]))
    fact = _fact_of(memory).with_sources([source])
    return replace(memory, trust=fact.trust, detail=fact.to_json())


def _fact_of(memory: NewMemory) -> SemanticDetail:
    fact = read_detail(MemoryType.SEMANTIC, memory.detail)
    assert isinstance(fact, SemanticDetail)
    return fact


def _repeated_source(text: str, situation: Situation, *, least: float) -> Source | None:
    """Return the source that has at least this share of the text's terms; None if nobody else has."""
    terms = _terms(text)
    if not terms:
        return None
    return _sender(terms, situation, least) or _speaker(terms, situation, least)


def _sender(terms: set[str], situation: Situation, least: float) -> Source | None:
    """Return the source whose percepts have that share of the terms: users first, then peers, then other senders."""
    senders: dict[tuple[int, str], list[PerceptView]] = {}
    for percept in situation.percepts:
        source = source_of(percept, situation.peers)
        precedence = (USER_MESSAGE, PEER_MESSAGE, percept.kind).index(percept.kind)
        senders.setdefault((precedence, source.key), []).append(percept)
    for _, percepts in sorted(senders.items(), key=lambda sender: sender[0][0]):
        if _shared(terms, [percept.content for percept in percepts]) >= least:
            return source_of(percepts[0], situation.peers)
    return None


def _speaker(terms: set[str], situation: Situation, least: float) -> Source | None:
    """Return the speaker of the memory or buffer item that has most of the terms; of several, the most trusted."""
    views: list[MemoryView | BufferItemView] = [
        *situation.recent,
        *situation.relevant,
        *situation.recalled,
        *situation.held,
    ]
    shares = [
        (share, view.trust, view.role)
        for view in views
        if view.role and view.role not in OWN_ROLES and (share := _shared(terms, [view.content])) >= least
    ]
    if not shares:
        return None
    _, trust, role = max(shares)
    speaker = Evidence(trust=trust, speaker=Source(kind="memory", reference=role, trust=1.0))
    (source,) = sources_of([speaker])
    return source


def _shared(terms: set[str], messages: Sequence[str]) -> float:
    """Return the share of the terms that the messages have, 0 to 1."""
    received = {term for message in messages for term in _terms(message)}
    return len(terms & received) / len(terms)


def _terms(text: str) -> set[str]:
    return {term_of(word) for word in words_of(text) if word not in STOP_WORDS}


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


def new_memory(heartbeat: HeartbeatState, content: str, kind: MemoryType, **more: Any) -> NewMemory:
    """Return a memory that the heartbeat creates now."""
    return NewMemory(content=content, type=kind, occurred_at=heartbeat.now, source=heartbeat.source, **more)


def _build_remembered(heartbeat: HeartbeatState, decision: Decision) -> MemoryDraft:
    params = decision.params
    memory = new_memory(
        heartbeat,
        params["content"],
        MemoryType(params["type"]),
        importance=params["importance"],
        detail={name: value for name in _DETAIL_PARAMS if (value := params.get(name))},
    )
    # The agent chose to remember the text, so its retention is lasting, except for errors.
    return MemoryDraft(
        memory=with_lasting_retention(heartbeat, memory, unless={Retention.ERROR}), verb="kept"
    )


def _build_insight(heartbeat: HeartbeatState, decision: Decision) -> MemoryDraft:
    params = decision.params
    detail = {"focus": params["focus"]}
    memory = new_memory(
        heartbeat, params["insight"], MemoryType.SEMANTIC, importance=INSIGHT_IMPORTANCE, detail=detail
    )
    return MemoryDraft(memory=memory, verb="noticed", is_conclusion=True, materials=params["rests_on"])


def _build_artifact(heartbeat: HeartbeatState, decision: Decision) -> MemoryDraft:
    params = decision.params
    creative = params["kind"] == ArtifactKind.CREATIVE
    memory = new_memory(
        heartbeat,
        params["content"],
        # A conclusion is a fact; an invention is an event.
        MemoryType.EPISODIC if creative else MemoryType.SEMANTIC,
        importance=ARTIFACT_IMPORTANCE,
        detail={"topic": params["topic"], "artifact": params["kind"]},
    )
    return MemoryDraft(
        memory=with_lasting_retention(heartbeat, memory),
        verb="made a creative work" if creative else f"made a {params['kind']}",
        is_conclusion=True,
        materials=params["materials"],
    )


MEMORY_BUILDERS: Mapping[str, Callable[[HeartbeatState, Decision], MemoryDraft]] = {
    "remember": _build_remembered,
    "reflect": _build_insight,
    "synthesize": _build_artifact,
}


def with_lasting_retention(
    heartbeat: HeartbeatState, memory: NewMemory, *, unless: Collection[Retention] = ()
) -> NewMemory:
    """Return a memory with at least lasting retention; one that is given, or appraised as one of `unless`, is unchanged."""
    if memory.retention is not None:
        return memory
    appraisal = appraise(memory.content, role=memory.role, type=memory.type, lists=heartbeat.rules.word_lists)
    return replace(memory, retention=at_least(appraisal.retention, Retention.LASTING, unless=unless))


def vectors_of(texts: Sequence[str], known: Mapping[str, Sequence[float]]) -> npt.NDArray[np.float32] | None:
    """Return the vectors of all texts, or None if one is missing: maintenance then embeds all of them."""
    if any(text not in known for text in texts):
        return None
    return np.asarray([known[text] for text in texts], dtype=np.float32)


def recall_filter(params: Mapping[str, Any], base: RecallFilter) -> RecallFilter:
    """Return the filter of a recall from the action's parameters."""
    since, until = (
        datetime.fromisoformat(params[name]) if params.get(name) else None for name in ("since", "until")
    )
    types = frozenset(MemoryType(name) for name in params.get("types", ()))
    # A decision in an older checkpoint has the cluster under the second key.
    concept, cluster = params.get("concept") or None, params.get("cluster") or params.get("theme") or None
    return replace(
        base,
        types=types,
        since=since,
        until=until,
        concept=read_id(concept) or concept,
        cluster=read_id(cluster) or cluster,
        episode=read_id(params.get("episode")),
    )
