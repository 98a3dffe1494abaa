"""Sources and trust of the memories that a heartbeat creates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from arbor.heartbeat.situation import Situation
from arbor.memory.details import SemanticDetail
from arbor.memory.english import STOP_WORDS
from arbor.memory.lexical import term_of, words_of
from arbor.memory.trust import Source, cap, semantic_trust
from arbor.memory.values import MemoryType, NewMemory
from arbor.selves.trust import UNMET

#: Trust in the agent's own conclusions: below 1, for a model can err.
OWN_CONCLUSION_TRUST = 0.8
#: Trust in a user's messages: above `DEFAULT_SOURCE_TRUST`, for the source is known.
USER_TRUST = 0.7
#: The least share of a text's terms in a message that makes the message its source.
_REPEATED_SHARE = 0.5

#: Actions that create memories.
LEARNING_ACTIONS = frozenset({"remember", "reflect", "synthesize", "inquire_shallow", "inquire_deep"})
#: `apps.heartbeats.models.PerceptKind`.
USER_MESSAGE = "user_message"
PEER_MESSAGE = "peer_message"


def learned(memory: NewMemory, *, situation: Situation, concluded: bool = False) -> NewMemory:
    """Return a memory with its source and the trust that its source allows (`trust.cap`).

    The source is a user or peer whose message has most of its terms, else, or if `concluded`, the agent itself. A fact
    has its source in its detail, without a time: repeated notes then store equal details.
    """
    source = _own(situation)
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


def _own(situation: Situation) -> Source:
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
