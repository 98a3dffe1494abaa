"""Dependencies of plans and preconditions of their steps: what must be true before a step is committed (seed 003, 3.8)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from arbor.errors import Invalid
from arbor.goals.likeness import same_goal
from arbor.goals.values import text_key
from arbor.ids import read_id
from arbor.quotations import beginning_of


def names_goal(text: str, *, goal_id: UUID, title: str) -> bool:
    """Return whether a condition names a goal, by its id or by its title."""
    return read_id(text.strip().strip("[]")) == goal_id or same_goal(text, title)


def unmet(dependencies: Iterable[str], met: Collection[str]) -> list[str]:
    """Return the dependencies that are not met yet."""
    known = {text_key(text) for text in met}
    return [text for text in dependencies if text_key(text) not in known]


def find_unmet(text: str, *, dependencies: Iterable[str], met: Collection[str]) -> str:
    """Return the unmet dependency that a text names, by its beginning too where a prompt has cut it.

    Raises Invalid, naming the unmet dependencies.
    """
    waiting = unmet(dependencies, met)
    for dependency in waiting:
        if text_key(dependency) == text_key(text) or same_goal(dependency, text):
            return dependency
    beginning = text_key(beginning_of(text))
    matching = {text_key(entry): entry for entry in waiting if text_key(entry).startswith(beginning)}
    if beginning and len(matching) == 1:
        return next(iter(matching.values()))
    raise Invalid(
        f"its plan does not wait for {text!r}; it waits for {'; '.join(waiting) if waiting else 'nothing'}"
    )
