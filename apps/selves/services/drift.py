"""Measure how far the self of an agent is from its birth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.agents.services.lookup import agent_by_id
from apps.selves.models import IdentityAspect
from apps.selves.services.history import birth_self_of
from arbor.selves.drift import Drift, measure_drift
from arbor.selves.history import PartKind
from arbor.selves.values import AspectKind, BeliefStatus


@dataclass(frozen=True, kw_only=True)
class SelfDrift:
    """The distance of the values and traits of an agent from those of its birth."""

    values: Drift
    traits: Drift

    @property
    def share(self) -> float:
        """Return the larger drift, 0 to 1."""
        return max(self.values.share, self.traits.share)


def measure_self_drift(agent_id: UUID) -> SelfDrift:
    """Measure how far an agent's values and traits are from those of its birth. Three statements. Raises NotFound."""
    agent_by_id(agent_id)
    born = birth_self_of(agent_id).of(PartKind.ASPECT).values()
    aspects = IdentityAspect.objects.filter(agent_id=agent_id, kind__in=(AspectKind.VALUE, AspectKind.TRAIT))
    today = list(aspects.exclude(status=BeliefStatus.DROPPED).values("kind", "content", "strength"))
    return SelfDrift(
        values=measure_drift(
            at_birth=_weights(born, AspectKind.VALUE), now=_weights(today, AspectKind.VALUE)
        ),
        traits=measure_drift(
            at_birth=_weights(born, AspectKind.TRAIT), now=_weights(today, AspectKind.TRAIT)
        ),
    )


def _weights(parts: Iterable[Mapping[str, Any]], kind: AspectKind) -> Mapping[str, float]:
    return {part["content"]: float(part.get("strength") or 0.0) for part in parts if part.get("kind") == kind}
