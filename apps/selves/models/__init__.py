"""The self of an agent: beliefs, aspects, preferences, conduct, proposals.

Nothing enters the self without review: beliefs, aspects and preferences come from an agent's birth, from a person, or
from a proposal that the agent's own heartbeat accepted, within limits; never from maintenance. Two import
contracts enforce this: heartbeats, maintenance, memories and workers import no service that changes beliefs, aspects or
preferences, and memories and workers none that decides about proposals.
"""

from apps.selves.models.calibrations import ProposalCalibration
from apps.selves.models.conduct import Boundary, Experience, PeerModel
from apps.selves.models.identity import Belief, BeliefEvidence, IdentityAspect, Preference
from apps.selves.models.proposals import Proposal, SelfChange

__all__ = [
    "Belief",
    "BeliefEvidence",
    "Boundary",
    "Experience",
    "IdentityAspect",
    "PeerModel",
    "Preference",
    "Proposal",
    "ProposalCalibration",
    "SelfChange",
]
