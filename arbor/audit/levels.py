"""The levels of audited acts."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class AuditLevel(StrEnum):
    """The attention that an audited act deserves."""

    #: Something was done.
    INFO = "info"
    #: Something was refused, cut or lowered.
    WARNING = "warning"
    #: Something failed, or stopped an agent.
    ERROR = "error"


#: The levels of acts (`apps.audit.models.AuditAction`) that are more than information.
LEVELS: Mapping[str, AuditLevel] = MappingProxyType(
    {
        "denied": AuditLevel.WARNING,
        "boundary": AuditLevel.WARNING,
        # Seed 001 asks for a warning on each truncation.
        "truncated": AuditLevel.WARNING,
        "reflex": AuditLevel.WARNING,
        "budget.level": AuditLevel.WARNING,
        "health.changed": AuditLevel.WARNING,
        "sign_in.failed": AuditLevel.WARNING,
        "sign_in.blocked": AuditLevel.WARNING,
        "message.refused": AuditLevel.WARNING,
        "request.refused": AuditLevel.WARNING,
        "seed.refused": AuditLevel.WARNING,
        "identity.suspended": AuditLevel.WARNING,
        "identity.revoked": AuditLevel.WARNING,
        "agent.dormant": AuditLevel.ERROR,
    }
)


def level_of(action: str) -> AuditLevel:
    """Return the level of an act whose recorder names none."""
    return LEVELS.get(action, AuditLevel.INFO)
