"""Capabilities, trust modes, trust tiers and requests for approval as rows."""

from apps.authority.models.capabilities import CapabilityGrant, CapabilityUse
from apps.authority.models.tiers import TierChange, TrustScore
from apps.authority.models.trust import ActionApproval, AgentTrust, ModeRule

__all__ = [
    "ActionApproval",
    "AgentTrust",
    "CapabilityGrant",
    "CapabilityUse",
    "ModeRule",
    "TierChange",
    "TrustScore",
]
