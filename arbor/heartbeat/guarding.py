"""Where an agent's boundaries bear on a heartbeat: on what reached it, and on what it is about to do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from arbor.heartbeat.decision import Decision, Verdict, texts_of
from arbor.heartbeat.self_views import CrossedView
from arbor.heartbeat.situation import PerceptView
from arbor.heartbeat.working_memory import clip
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.boundary_check import (
    BoundaryRule,
    Crossing,
    Vector,
    check,
    may_go_on,
    words_wanted,
)

_ABOUT_LENGTH = 120
_ID = re.compile(r"[0-9a-fA-F-]{32,36}")


def crossed_by(
    percepts: Sequence[PerceptView], boundaries: Sequence[BoundaryRule], vectors: Mapping[str, Vector]
) -> list[CrossedView]:
    """Return which boundaries the percepts touch, the most important first."""
    found = check([percept.content for percept in percepts], boundaries, vectors)
    return [_view(crossing, about=percepts[crossing.text].id) for crossing in found]


def within_boundaries(
    decision: Decision, boundaries: Sequence[BoundaryRule], vectors: Mapping[str, Vector]
) -> Decision:
    """Return the decision, refused if it crosses a boundary that does not let it go on; what it crosses is noted on it.

    The action's texts are what is checked: everything it would say, store or search for. A refusal costs nothing.
    """
    if not decision.runs or not boundaries:
        return decision
    texts = [*texts_of(decision.params)]
    known = {each.boundary for each in decision.crossed}
    found = [each for each in _once(check(texts, boundaries, vectors)) if each.boundary.name not in known]
    if not found:
        return decision
    crossed = [*decision.crossed, *(_view(each) for each in found)]
    stop = next((each for each in found if not may_go_on(each.boundary, decision.reasoning)), None)
    if stop is None:
        return decision.model_copy(update={"crossed": crossed})
    return decision.model_copy(
        update={"crossed": crossed, "verdict": Verdict.BOUNDARY, "reason": _reason(stop), "cost": 0}
    )


def about(params: Mapping[str, Any]) -> str:
    """Return what an action is about, in at most 120 characters: the first of its texts that is not an id; or nothing."""
    for text in texts_of(params):
        if " " in text.strip() or not _ID.fullmatch(text.strip()):
            return clip(" ".join(text.split()), _ABOUT_LENGTH)
    return ""


def _once(crossings: Sequence[Crossing]) -> list[Crossing]:
    return list({each.boundary.name: each for each in reversed(crossings)}.values())[::-1]


def _view(crossing: Crossing, about: str = "") -> CrossedView:
    boundary = crossing.boundary
    negotiable = boundary.response is BoundaryResponse.NEGOTIATE and boundary.flexibility > 0
    return CrossedView(
        boundary=boundary.name,
        response=boundary.response,
        description=boundary.description,
        why=crossing.why,
        about=about,
        words_wanted=words_wanted(boundary) if negotiable else None,
    )


def _reason(crossing: Crossing) -> str:
    boundary = crossing.boundary
    said = f"it crosses your boundary {boundary.name}, for {crossing.why}"
    if boundary.description:
        said += f": {boundary.description}"
    if boundary.response is BoundaryResponse.NEGOTIATE and boundary.flexibility > 0:
        said += (
            f" It runs if its reasoning names {boundary.name} and says why in at least"
            f" {words_wanted(boundary)} more words; or do something else instead."
        )
    return said
