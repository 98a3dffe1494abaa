"""Find proposals that would change nothing, because the agent already has what they propose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

from apps.selves.models import Belief, IdentityAspect, Preference, Proposal
from arbor.memory.content import content_hash
from arbor.selves.proposals import NewProposal, ProposalKind
from arbor.selves.tendencies import is_another_strength
from arbor.selves.values import QUALITIES, AspectKind, BeliefStatus


def find_redundant(*, agent_id: UUID, proposals: Sequence[NewProposal]) -> tuple[NewProposal, ...]:
    """Return the proposals of parts of the self that the agent has already, traits of about the same strength among them.

    One statement for each kind of part among the proposals.
    """
    by_kind = {
        kind: [new for new in proposals if new.kind is kind and "belief" not in new.change]
        for kind in _FINDERS_OF_KNOWN
    }
    return tuple(
        new for kind, news in by_kind.items() if news for new in _FINDERS_OF_KNOWN[kind](agent_id, news)
    )


def strength_of(proposal: NewProposal | Proposal) -> float:
    """Return the proposed strength of a trait, value or capability."""
    return float(proposal.change.get("strength", proposal.confidence))


def _known_aspects(agent_id: UUID, proposals: Sequence[NewProposal]) -> Iterator[NewProposal]:
    hashes = {content_hash(new.content) for new in proposals}
    held = IdentityAspect.objects.filter(agent_id=agent_id, content_hash__in=hashes).exclude(
        status=BeliefStatus.DROPPED
    )
    strengths = {
        (kind, bytes(hashed)): strength
        for kind, hashed, strength in held.values_list("kind", "content_hash", "strength")
    }
    for new in proposals:
        kind = AspectKind(new.change.get("aspect", AspectKind.SELF_CONCEPT))
        before = strengths.get((kind.value, content_hash(new.content)))
        if before is None or (kind in QUALITIES and is_another_strength(before, strength_of(new))):
            continue
        yield new


def _known_beliefs(agent_id: UUID, proposals: Sequence[NewProposal]) -> Iterator[NewProposal]:
    rows = Belief.objects.filter(
        agent_id=agent_id, statement_hash__in={content_hash(new.content) for new in proposals}
    )
    held = rows.exclude(status=BeliefStatus.DROPPED).values_list("statement_hash", flat=True)
    hashes = {bytes(hashed) for hashed in held}
    return (new for new in proposals if content_hash(new.content) in hashes)


def _known_preferences(agent_id: UUID, proposals: Sequence[NewProposal]) -> Iterator[NewProposal]:
    keys = {str(new.change["key"]) for new in proposals}
    rows = Preference.objects.filter(agent_id=agent_id, key__in=keys)
    held = dict(rows.values_list("key", "value"))
    return (new for new in proposals if held.get(new.change["key"]) == new.change["value"])


#: By kind of proposal, the function that yields the proposals of what the agent has already.
_FINDERS_OF_KNOWN: Mapping[ProposalKind, Callable[[UUID, Sequence[NewProposal]], Iterator[NewProposal]]] = (
    MappingProxyType(
        {
            ProposalKind.IDENTITY: _known_aspects,
            ProposalKind.BELIEF: _known_beliefs,
            ProposalKind.PREFERENCE: _known_preferences,
        }
    )
)
