"""Where from an agent has what it learns at a heartbeat, and how far that can be trusted."""

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

#: What the agent itself concludes: mostly right, never beyond doubt, for a model can err. Ours.
OWN_CONCLUSION_TRUST = 0.8
#: What somebody told it: people mean well and mix things up, and a message may be meant to mislead. Ours; above
#: `DEFAULT_SOURCE_TRUST`, for it is known who spoke.
USER_TRUST = 0.7
#: Share of what a text says that a message must have said for the text to stem from it. Ours: the greater part.
HEARD_SHARE = 0.5

#: Actions by which an agent remembers something new.
LEARNING_ACTIONS = frozenset({"remember", "reflect", "synthesize", "inquire_shallow", "inquire_deep"})
#: `apps.heartbeats.models.PerceptKind`.
USER_MESSAGE = "user_message"
PEER_MESSAGE = "peer_message"


def learned(memory: NewMemory, *, situation: Situation, concluded: bool = False) -> NewMemory:
    """Return a memory with where the agent has it from, trusted as far as that allows (`trust.cap`).

    Told by a user or a peer if it says mostly what a message of this beat says, else, or if it was `concluded`, the agent's own.
    One agent, like one user, is one source, however often it repeats itself. A fact keeps its source in its detail,
    without the time, which its row has: what is noted again and again is not written anew each time.
    """
    source = _own(situation)
    if not concluded and _heard(memory.content, _messages(situation)):
        source = Source(kind="user", reference="user", trust=USER_TRUST)
    elif not concluded and (peer := _peer_heard(memory.content, situation)) is not None:
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


def _peer_heard(text: str, situation: Situation) -> Source | None:
    """Return the peer whose words the text repeats, if it does: trusted as it has earned (seed 003, 10.3), and no more
    than a user is."""
    trusted = {peer.name: peer.trust for peer in situation.peers}
    for percept in situation.percepts:
        if percept.kind == PEER_MESSAGE and percept.peer and _heard(text, [percept.content]):
            trust = min(trusted.get(percept.peer, UNMET), USER_TRUST)
            return Source(kind="agent", reference=f"agent:{percept.peer_id}", trust=trust)
    return None


def _messages(situation: Situation) -> list[str]:
    return [each.content for each in situation.percepts if each.kind == USER_MESSAGE]


def _heard(text: str, messages: Iterable[str]) -> bool:
    said = _terms(text)
    heard = {term for message in messages for term in _terms(message)}
    return bool(said) and len(said & heard) >= HEARD_SHARE * len(said)


def _terms(text: str) -> set[str]:
    return {term_of(word) for word in words_of(text) if word not in STOP_WORDS}
