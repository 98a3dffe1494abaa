"""Goals, plans and what belongs to them in the operator's console."""

from apps.goals.admin import goals, plans

__all__ = ["goals", "plans"]
