"""Where an agent's boundaries bear on a heartbeat: on what reached it, on what it is about to do, and to keep."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Sized
from typing import Any

from pydantic import BaseModel, ConfigDict

from arbor.heartbeat.decision import Decision, Verdict, texts_of
from arbor.heartbeat.items import Dropped
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.reply import Part, Reply
from arbor.heartbeat.self_views import CrossedView
from arbor.heartbeat.situation import PerceptView
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.boundary_check import BoundaryRule, Crossing, Vector, check, may_go_on, words_wanted

_ABOUT_LENGTH = 120
#: What of a reply costs nothing and lasts: the words of each item, by its key. Why something is done (`reason`), and what
#: is merely thought or felt, is not held against anything.
_LASTING: Mapping[str, frozenset[str]] = {
    "memory_notes": frozenset({"text"}),
    "goal_updates": frozenset({"note", "blocked_by"}),
    "new_goals": frozenset({"title", "description"}),
    "decompositions": frozenset({"intentions", "dependencies"}),
    "identity_insights": frozenset({"content"}),
}
_ID = re.compile(r"[0-9a-fA-F-]{32,36}")


class FreeCrossing(BaseModel):
    """A boundary that an item of a reply crosses which costs nothing; JSON by `model_dump(mode="json")`.

    `reason` says why the item is not taken, and is empty where it is, at a boundary that lets it go on.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    value: str
    crossed: CrossedView
    reason: str = ""


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


def reply_within_boundaries(
    reply: Reply,
    boundaries: Sequence[BoundaryRule],
    vectors: Mapping[str, Vector] | None = None,
    *,
    untaken: Collection[str] = (),
) -> tuple[Reply, list[FreeCrossing]]:
    """Return the reply without what it would keep for nothing beyond a boundary, and each boundary that it crosses.

    What an action may not do, no note, goal, step or insight of the same words may. What is negotiable is taken if the
    reply's thoughts address it. Without vectors the words decide; with them, only the texts that have one are looked at.
    `untaken` are the paths of items that the reply had before and was left without.
    """
    kept: dict[str, list[Part]] = {}
    crossings: list[FreeCrossing] = []
    for key, words in _LASTING.items():
        items: Sequence[Part] = getattr(reply, key)
        taken = []
        for path, item in zip(paths_of(key, items, untaken), items, strict=True):
            found = _crossings_of(path, item, words, reply.thinking, boundaries, vectors)
            crossings += found
            if not any(each.reason for each in found):
                taken.append(item)
        if len(taken) < len(items):
            kept[key] = taken
    return (reply.model_copy(update=kept) if kept else reply), crossings


def paths_of(key: str, items: Sized, untaken: Collection[str]) -> list[str]:
    """Return the path that each item of a reply's list had in it as the model gave it, before some were not taken."""
    paths = (f"{key}[{place}]" for place in range(len(items) + len(untaken)))
    return [path for path in paths if path not in untaken][: len(items)]


def not_taken(crossings: Sequence[FreeCrossing]) -> list[Dropped]:
    """Return the items that are not taken, each once."""
    return [
        *dict.fromkeys(
            Dropped(path=each.path, value=each.value, reason=each.reason) for each in crossings if each.reason
        )
    ]


def _crossings_of(
    path: str,
    item: Part,
    words: frozenset[str],
    thinking: str,
    boundaries: Sequence[BoundaryRule],
    vectors: Mapping[str, Vector] | None,
) -> list[FreeCrossing]:
    said = texts_of(item.model_dump(mode="json", include=set(words)))
    texts = [text for text in said if vectors is None or text in vectors]
    found = _once(check(texts, boundaries, vectors or {})) if texts else []
    stop = next((each for each in found if not may_go_on(each.boundary, thinking)), None)
    reason = _reason(stop, "It is taken if your thinking") if stop is not None else ""
    value = item.model_dump_json() if found else ""
    return [FreeCrossing(path=path, value=value, crossed=_view(each), reason=reason) for each in found]


def about(params: dict[str, Any]) -> str:
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


def _reason(crossing: Crossing, negotiable: str = "It runs if its reasoning") -> str:
    boundary = crossing.boundary
    said = f"it crosses your boundary {boundary.name}, for {crossing.why}"
    if boundary.description:
        said += f": {boundary.description}"
    if boundary.response is BoundaryResponse.NEGOTIATE and boundary.flexibility > 0:
        said += (
            f" {negotiable} names {boundary.name} and says why in at least"
            f" {words_wanted(boundary)} more words; or do something else instead."
        )
    return said
