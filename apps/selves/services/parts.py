"""The values of the parts of a self, as the self history records them."""

from __future__ import annotations

from typing import Any

from apps.selves.models import Belief, Boundary, IdentityAspect, Preference


def aspect_values(aspect: IdentityAspect) -> dict[str, Any]:
    """Return the recorded values of an aspect."""
    return {
        "kind": str(aspect.kind),
        "content": aspect.content,
        "strength": aspect.strength,
        "stability": aspect.stability,
        "status": str(aspect.status),
    }


def belief_values(belief: Belief) -> dict[str, Any]:
    """Return the recorded values of a belief."""
    return {
        "statement": belief.statement,
        "category": str(belief.category),
        "confidence": belief.confidence,
        "stability": belief.stability,
        "status": str(belief.status),
    } | ({"filters": belief.filters} if belief.filters else {})


def preference_values(preference: Preference) -> dict[str, str]:
    """Return the recorded values of a preference."""
    return {"key": preference.key, "value": preference.value}


def boundary_values(boundary: Boundary) -> dict[str, Any]:
    """Return the recorded values of a boundary."""
    return {
        "name": boundary.name,
        "description": boundary.description,
        "type": str(boundary.type),
        "response": str(boundary.response),
        "patterns": boundary.patterns,
        "examples": boundary.examples,
        "flexibility": boundary.flexibility,
        "importance": boundary.importance,
        "enabled": boundary.enabled,
    }
