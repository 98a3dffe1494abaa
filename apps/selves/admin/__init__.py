"""Selves in the operator's console."""

from apps.selves.admin.conduct import BoundaryAdmin, ExperienceAdmin, PeerModelAdmin
from apps.selves.admin.selfhood import (
    BeliefAdmin,
    BeliefEvidenceAdmin,
    IdentityAspectAdmin,
    PreferenceAdmin,
    ProposalAdmin,
    SelfChangeAdmin,
)

__all__ = [
    "BeliefAdmin",
    "BeliefEvidenceAdmin",
    "BoundaryAdmin",
    "ExperienceAdmin",
    "IdentityAspectAdmin",
    "PeerModelAdmin",
    "PreferenceAdmin",
    "ProposalAdmin",
    "SelfChangeAdmin",
]
