"""Show the self-knowledge of an agent, and how it came about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import Field

from apps.mcp_server.callers import ToolContext, called_agent
from apps.mcp_server.definitions import AgentParam, ToolResult
from apps.selves.services.drift import measure_self_drift
from apps.selves.services.history import SelfVersion, latest_version, versions_of
from apps.selves.services.self_knowledge import load_self_knowledge
from arbor.selves.self_knowledge import Quality


class QualityLine(ToolResult):
    """A trait, value or capability."""

    name: str
    strength: float = Field(description="0 to 1: of a value its importance, of a capability the proficiency.")
    questioned: bool


class SelfVersionLine(ToolResult):
    """A version of a self."""

    number: int
    at: datetime
    decided_by: str
    reason: str
    changes: list[str] = Field(description="What differs from the version before; of the birth, nothing.")


class SelfReport(ToolResult):
    """The self-knowledge of an agent today, and the versions that led there."""

    agent: str
    version: int
    traits: list[QualityLine]
    values: list[QualityLine]
    capabilities: list[QualityLine]
    drift: float = Field(description="The distance of values and traits from those of the birth, 0 to 1.")
    versions: list[SelfVersionLine] = Field(description="The ten latest, the latest first, and the birth.")


def show_self(context: ToolContext, agent: AgentParam = None) -> SelfReport:
    """Show an agent's traits, values and capabilities, and how its self has changed. Only people roll a self back."""
    called = called_agent(context, agent)
    with called.transaction():
        knowledge = load_self_knowledge(called.id)
        return SelfReport(
            agent=called.name,
            version=latest_version(called.id),
            traits=_lines(knowledge.traits),
            values=_lines(knowledge.values),
            capabilities=_lines(knowledge.capabilities),
            drift=measure_self_drift(called.id).share,
            versions=[_version(version) for version in versions_of(called.id)],
        )


def _lines(qualities: Sequence[Quality]) -> list[QualityLine]:
    return [
        QualityLine(name=quality.name, strength=quality.strength, questioned=quality.questioned)
        for quality in qualities
    ]


def _version(version: SelfVersion) -> SelfVersionLine:
    return SelfVersionLine(
        number=version.number,
        at=version.at,
        decided_by=version.decided_by,
        reason=version.reason,
        changes=[f"{change.act} {change.kind} {change.name}" for change in version.changes],
    )
