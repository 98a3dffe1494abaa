"""Proposals: changes to the self that wait for the agent's own decision (seed 000, 2 and 5)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class ProposalKind(StrEnum):
    """What is proposed."""

    #: Something that is so.
    FACT = "fact"
    #: Something understood.
    INSIGHT = "insight"
    #: Something that can be done now.
    LEARNING = "learning"
    #: Something that keeps happening.
    PATTERN = "pattern"
    #: Something at the edge of the mind.
    PRECONSCIOUS = "preconscious"
    #: A side of who the agent is.
    IDENTITY = "identity"
    #: A change to something the agent believes.
    BELIEF = "belief"
    #: A way the agent wants to behave.
    PREFERENCE = "preference"


class ProposalStatus(StrEnum):
    """What was decided."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    #: Fell out of the full queue, or time went over it.
    EXPIRED = "expired"


PROPOSAL_TRANSITIONS: Mapping[ProposalStatus, tuple[ProposalStatus, ...]] = MappingProxyType(
    {
        ProposalStatus.PENDING: (
            ProposalStatus.ACCEPTED,
            ProposalStatus.REJECTED,
            ProposalStatus.EXPIRED,
        ),
        ProposalStatus.ACCEPTED: (),
        ProposalStatus.REJECTED: (),
        ProposalStatus.EXPIRED: (),
    }
)
