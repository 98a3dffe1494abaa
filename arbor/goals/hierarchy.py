"""The hierarchy of goals: a parent's fraction and completion, and the limits of nesting (seed 004, 4.6)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from arbor.errors import Invalid
from arbor.goals.values import GoalState

#: The deepest nesting of goals, the lowest included.
MAX_DEPTH = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildGoal:
    """A part of a goal; `fraction` is the share that is done, 0 to 1."""

    state: GoalState
    fraction: float = 0.0


def is_reached(children: Iterable[ChildGoal]) -> bool:
    """Return whether a goal is reached by its children: none is open any more, and at least one was completed.

    Abandoned children do not count, but a goal whose children were all abandoned is not reached.
    """
    states = [child.state for child in children]
    return GoalState.COMPLETED in states and not any(state.is_open for state in states)


def fraction_of(children: Iterable[ChildGoal]) -> float | None:
    """Return the mean fraction of a goal's children without abandoned ones, 0 to 1; None without such children."""
    fractions = [
        1.0 if child.state is GoalState.COMPLETED else child.fraction
        for child in children
        if child.state is not GoalState.ABANDONED
    ]
    return round(sum(fractions) / len(fractions), 6) if fractions else None


def require_place[K: Hashable](goal: K | None, parent: K, parents: Mapping[K, K | None]) -> None:
    """Raise Invalid if `goal` (None: a new goal) cannot be a part of `parent`: it would be below itself, or too deep.

    `parents` are the open goals, each with its parent; goals above a closed one no longer count.
    """
    above = chain(parent, parents)
    if goal is not None and goal in above:
        raise Invalid("a goal cannot be a part of itself, nor of one of its own parts")
    below = 1 if goal is None else _height(goal, parents)
    if len(above) + below > MAX_DEPTH:
        raise Invalid(
            f"goals are nested at most {MAX_DEPTH} deep; make it a part of a goal further up, or of none"
        )


def chain[K: Hashable](goal: K, parents: Mapping[K, K | None]) -> list[K]:
    """Return a goal and all goals above it, from the lowest to the highest; each once, also in the circle of a damaged seed."""
    found = [goal]
    while (above := parents.get(found[-1])) is not None and above not in found:
        found.append(above)
    return found


def _height[K: Hashable](goal: K, parents: Mapping[K, K | None]) -> int:
    """Return the depth of the hierarchy below a goal, itself included."""
    chains = (chain(other, parents) for other in parents)
    return max(found.index(goal) + 1 for found in chains if goal in found)
