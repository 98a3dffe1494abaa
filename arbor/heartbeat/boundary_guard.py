"""Checks of percepts, decisions and replies against the agent's boundaries."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Sized
from typing import Any

from pydantic import BaseModel, ConfigDict

from arbor.heartbeat.decision import Decision, DecisionVerdict, texts_of
from arbor.heartbeat.items import Dropped
from arbor.heartbeat.quotations import clip
from arbor.heartbeat.reply import Reply, ReplyPart
from arbor.heartbeat.situation import PerceptView
from arbor.heartbeat.views import MatchedBoundary
from arbor.selves.boundaries import BoundaryResponse, BoundaryRule
from arbor.selves.boundary_check import BoundaryMatch, Vector, check, may_go_on, words_wanted

_ABOUT_LENGTH = 120
#: The checked fields of a reply's items, by key: those that persist. Reasons and thoughts are not checked.
_LASTING: Mapping[str, frozenset[str]] = {
    "memory_notes": frozenset({"text"}),
    "goal_updates": frozenset({"note", "blocked_by"}),
    "new_goals": frozenset({"title", "description"}),
    "decompositions": frozenset({"intentions", "dependencies"}),
    "identity_insights": frozenset({"content"}),
}
_ID = re.compile(r"[0-9a-fA-F-]{32,36}")


class ItemBoundaryMatch(BaseModel):
    """A boundary match of an item of a reply that is no action; JSON by `model_dump(mode="json")`.

    `reason` is why the item is dropped, and empty if it is accepted.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    value: str
    crossed: MatchedBoundary
    reason: str = ""


def boundary_matches_of(
    percepts: Sequence[PerceptView], boundaries: Sequence[BoundaryRule], vectors: Mapping[str, Vector]
) -> list[MatchedBoundary]:
    """Return the boundary matches of the percepts, the most important first."""
    found = check([percept.content for percept in percepts], boundaries, vectors)
    return [_view(crossing, about=percepts[crossing.text].id) for crossing in found]


def within_boundaries(
    decision: Decision, boundaries: Sequence[BoundaryRule], vectors: Mapping[str, Vector]
) -> Decision:
    """Return the decision with its boundary matches, refused if one of them does not allow it. All texts are checked."""
    if not decision.runs or not boundaries:
        return decision
    texts = [*texts_of(decision.params)]
    known = {crossing.boundary for crossing in decision.crossed}
    found = [match for match in _once(check(texts, boundaries, vectors)) if match.boundary.name not in known]
    if not found:
        return decision
    crossed = [*decision.crossed, *map(_view, found)]
    stop = next((match for match in found if not may_go_on(match.boundary, decision.reasoning)), None)
    if stop is None:
        return decision.model_copy(update={"crossed": crossed})
    return decision.model_copy(
        update={"crossed": crossed, "verdict": DecisionVerdict.BOUNDARY, "reason": _reason(stop), "cost": 0}
    )


def reply_within_boundaries(
    reply: Reply,
    boundaries: Sequence[BoundaryRule],
    vectors: Mapping[str, Vector] | None = None,
    *,
    untaken: Collection[str] = (),
) -> tuple[Reply, list[ItemBoundaryMatch]]:
    """Return the reply without the items that a boundary refuses, and all boundary matches.

    A negotiable boundary accepts an item that the reply's thoughts justify. Without vectors the words decide; with
    them, only texts with a vector are checked. `untaken` are the paths of items that were dropped before.
    """
    remaining: dict[str, list[ReplyPart]] = {}
    crossings: list[ItemBoundaryMatch] = []
    for key, words in _LASTING.items():
        items: Sequence[ReplyPart] = getattr(reply, key)
        accepted = []
        for path, item in zip(paths_of(key, items, untaken), items, strict=True):
            found = _crossings_of(path, item, words, reply.thinking, boundaries, vectors)
            crossings += found
            if not any(crossing.reason for crossing in found):
                accepted.append(item)
        if len(accepted) < len(items):
            remaining[key] = accepted
    return (reply.model_copy(update=remaining) if remaining else reply), crossings


def paths_of(key: str, items: Sized, untaken: Collection[str]) -> list[str]:
    """Return the original path of each item of a reply's list, before items were dropped."""
    paths = (f"{key}[{place}]" for place in range(len(items) + len(untaken)))
    return [path for path in paths if path not in untaken][: len(items)]


def dropped_at_boundaries(crossings: Sequence[ItemBoundaryMatch]) -> list[Dropped]:
    """Return the distinct dropped items."""
    return [
        *dict.fromkeys(
            Dropped(path=item.path, value=item.value, reason=item.reason) for item in crossings if item.reason
        )
    ]


def _crossings_of(
    path: str,
    item: ReplyPart,
    words: frozenset[str],
    thinking: str,
    boundaries: Sequence[BoundaryRule],
    vectors: Mapping[str, Vector] | None,
) -> list[ItemBoundaryMatch]:
    fields = texts_of(item.model_dump(mode="json", include=set(words)))
    texts = [text for text in fields if vectors is None or text in vectors]
    found = _once(check(texts, boundaries, vectors or {})) if texts else []
    stop = next((match for match in found if not may_go_on(match.boundary, thinking)), None)
    reason = _reason(stop, "It is taken if your thinking") if stop is not None else ""
    value = item.model_dump_json() if found else ""
    return [ItemBoundaryMatch(path=path, value=value, crossed=_view(match), reason=reason) for match in found]


def about(params: dict[str, Any]) -> str:
    """Return the first text of an action that is no id, in at most 120 characters; or an empty text."""
    for text in texts_of(params):
        if " " in text.strip() or not _ID.fullmatch(text.strip()):
            return clip(" ".join(text.split()), _ABOUT_LENGTH)
    return ""


def _once(crossings: Sequence[BoundaryMatch]) -> list[BoundaryMatch]:
    return list({match.boundary.name: match for match in reversed(crossings)}.values())[::-1]


def _view(match: BoundaryMatch, about: str = "") -> MatchedBoundary:
    boundary = match.boundary
    negotiable = boundary.response is BoundaryResponse.NEGOTIATE and boundary.flexibility > 0
    return MatchedBoundary(
        boundary=boundary.name,
        response=boundary.response,
        description=boundary.description,
        why=match.why,
        about=about,
        words_wanted=words_wanted(boundary) if negotiable else None,
    )


def _reason(match: BoundaryMatch, negotiable: str = "It runs if its reasoning") -> str:
    boundary = match.boundary
    reason = f"it crosses your boundary {boundary.name}, for {match.why}"
    if boundary.description:
        reason += f": {boundary.description}"
    if boundary.response is BoundaryResponse.NEGOTIATE and boundary.flexibility > 0:
        reason += (
            f" {negotiable} names {boundary.name} and says why in at least"
            f" {words_wanted(boundary)} more words; or do something else instead."
        )
    return reason
