"""The sources of an agent's new memories, and their trust: a memory that repeats others' words is trusted as far as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, PerceptView, Situation
from arbor.heartbeat.sources import own_source, source_of
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.text.lexical import STOP_WORDS, term_of, words_of
from arbor.memory.trust import OWN_ROLES, Evidence, Source, max_trust, reinforcement, sources_of
from arbor.memory.values import MemoryType, NewMemory
from arbor.values import replace

#: A message with at least this share of a note's terms is the note's source. A conclusion adds something of its own, so the
#: share of its terms must be higher.
_REPEATED_SHARE = 0.5
_ONLY_REPEATED_SHARE = 0.75


def with_source_of_note(memory: NewMemory, *, situation: Situation) -> NewMemory:
    """Return a note with its source and the trust that its source allows (`trust.max_trust`).

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
    return _with_source(memory, replace(own, trust=_added_to(memory, most=min(bounds))))


def _added_to(memory: NewMemory, *, most: float) -> float:
    """Return the trust of a further source that raises the trust of a fact to `most` at most."""
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
    """Return the source whose percepts have that share of the terms: users first, then peers, then what is no person."""
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
    views = (*situation.recent, *situation.relevant, *situation.recalled, *situation.held)
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
