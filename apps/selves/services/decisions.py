"""Decide several proposals as a person, each in a savepoint of its own, so that a refused one does not undo the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from apps.agents.services.locks import lock_schedules
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.selves.models import Proposal
from apps.selves.services.changes import REASON_LENGTH
from apps.selves.services.proposals import accept, defer, reject
from arbor.errors import Invalid, NotFound
from arbor.memory.content import check_line
from arbor.quotations import counted
from arbor.selves.proposals import ProposalStatus

#: The most proposals of one call.
MAX_DECIDED = 100


class ProposalVerdict(StrEnum):
    """A person's decision about a proposal."""

    #: Apply it.
    ACCEPT = "accept"
    #: Refuse it for good.
    REJECT = "reject"
    #: Leave it to a later decision.
    DEFER = "defer"


_SERVICES: Mapping[ProposalVerdict, Callable[..., Proposal]] = MappingProxyType(
    {ProposalVerdict.ACCEPT: accept, ProposalVerdict.REJECT: reject, ProposalVerdict.DEFER: defer}
)
_PAST = MappingProxyType(
    {
        ProposalVerdict.ACCEPT: "accepted",
        ProposalVerdict.REJECT: "rejected",
        ProposalVerdict.DEFER: "deferred",
    }
)


@dataclass(frozen=True, kw_only=True)
class DecisionResult:
    """The decided proposals, and why others were refused, by id."""

    decision: ProposalVerdict
    decided: tuple[Proposal, ...]
    refused: Mapping[UUID, str]

    @property
    def in_words(self) -> str:
        """Describe the result: a sentence for the decided proposals, and one for each reason of a refusal."""
        count = len(self.decided)
        sentences = [f"{counted(count, 'proposal')} {_PAST[self.decision]}."] if count else []
        for reason in sorted(set(self.refused.values())):
            refused = sum(other == reason for other in self.refused.values())
            sentences.append(f"{refused} not {_PAST[self.decision]}: {reason}.")
        return " ".join(sentences)


def decide_proposals(
    *, proposal_ids: Sequence[UUID], decision: ProposalVerdict, decided_by: str, reason: str = ""
) -> DecisionResult:
    """Decide pending proposals of the current tenant, each audited. Raises Invalid for too many, or for the reason."""
    if not 1 <= len(proposal_ids) <= MAX_DECIDED:
        raise Invalid(f"1 to {MAX_DECIDED} proposals are decided at once, got {len(proposal_ids)}")
    reason = _checked(reason)
    decided: list[Proposal] = []
    refused: dict[UUID, str] = {}
    accepted = _lock_schedules_of(proposal_ids)
    for proposal_id in sorted(set(proposal_ids)):
        try:
            proposal = _SERVICES[decision](proposal_id=proposal_id, decided_by=decided_by, reason=reason)
        except (Invalid, NotFound) as refusal:
            refused[proposal_id] = str(refusal)
            continue
        if proposal_id not in accepted:
            _record(proposal, decision, decided_by, reason)
        decided.append(proposal)
    return DecisionResult(decision=decision, decided=tuple(decided), refused=refused)


def decide_proposal(
    *,
    proposal_id: UUID,
    decision: ProposalVerdict,
    decided_by: str,
    reason: str = "",
    agent_id: UUID | None = None,
) -> Proposal:
    """Decide a pending proposal for a person, audited. Raises NotFound, also for another agent's, and Invalid, also for the reason.

    Accepting an accepted one again changes nothing, and is not recorded.
    """
    reason = _checked(reason)
    accepted = _lock_schedules_of([proposal_id])
    proposal = _SERVICES[decision](
        proposal_id=proposal_id, agent_id=agent_id, decided_by=decided_by, reason=reason
    )
    if proposal_id not in accepted:
        _record(proposal, decision, decided_by, reason)
    return proposal


def _checked(reason: str) -> str:
    """Return a reason on one line. Raises Invalid."""
    line = " ".join(reason.split())
    check_line("a reason", line, REASON_LENGTH)
    return line


def _lock_schedules_of(proposal_ids: Collection[UUID]) -> set[UUID]:
    """Lock the schedules of the proposals' agents, and return the proposals that are accepted already. Three statements.

    Without the lock, two people who accept at once would both find a proposal pending.
    """
    proposals = Proposal.objects.filter(id__in=proposal_ids)
    # The order of the proposals is not that of their agents.
    lock_schedules(list(proposals.values_list("agent_id", flat=True)))
    return set(proposals.filter(status=ProposalStatus.ACCEPTED).values_list("id", flat=True))


def _record(proposal: Proposal, decision: ProposalVerdict, decided_by: str, reason: str) -> None:
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=decided_by,
        agent_id=proposal.agent_id,
        message=f"{_PAST[decision]} the proposal {proposal}",
        detail={"proposal": str(proposal.id), "decision": decision.value, "reason": reason},
    )
