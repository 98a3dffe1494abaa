"""Check decisions against the reflexes, and percepts, decisions and replies against the agent's boundaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, Field

from arbor.authority.reflexes import COMMAND_NAMES, ReflexKind, ReflexTerms, find_secret, reflex_of
from arbor.heartbeat.decision import Decision, DecisionVerdict, refuse, texts_of, texts_to_guard
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.reply import Reply, ReplyPart
from arbor.heartbeat.situation import PerceptView
from arbor.heartbeat.views import MatchedBoundary
from arbor.quotations import shorten
from arbor.selves.boundaries import BoundaryRule
from arbor.selves.boundary_check import (
    BoundaryMatch,
    Vector,
    at_least_words,
    find_matches,
    may_proceed,
    negotiated_words,
)
from arbor.tools.names import is_tool_action
from arbor.tools.schemas import ARGUMENTS_DEPTH

_ABOUT_LENGTH = 120
#: The checked fields of a reply's items, by key: the fields that are stored. Reasons and thoughts are not checked.
_STORED_FIELDS: Mapping[str, frozenset[str]] = {
    "memory_notes": frozenset({"text"}),
    "goal_updates": frozenset({"note", "blocked_by"}),
    "new_goals": frozenset({"title", "description"}),
    "decompositions": frozenset({"intentions", "dependencies"}),
    "identity_insights": frozenset({"content"}),
}
_ID = re.compile(r"[0-9a-fA-F-]{32,36}")
#: Replaces texts of a refused action in records, so that no secret gets there.
REMOVED = "[removed by a reflex]"


class ItemBoundaryMatch(BaseModel, frozen=True):
    """A boundary match of an item of a reply that is no action; JSON by `model_dump(mode="json")`.

    `reason` is why the item is dropped, and empty if it is accepted.
    """

    path: str
    value: str
    #: `crossed` in older checkpoints.
    boundary_match: Annotated[
        MatchedBoundary, Field(validation_alias=AliasChoices("boundary_match", "crossed"))
    ]
    reason: str = ""


def boundary_matches_of(
    percepts: Sequence[PerceptView], boundaries: Sequence[BoundaryRule], vectors: Mapping[str, Vector]
) -> list[MatchedBoundary]:
    """Return the boundary matches of the percepts, the most important first."""
    matches = find_matches([percept.content for percept in percepts], boundaries, vectors)
    return [_view(match, about=percepts[match.text].id) for match in matches]


def apply_boundaries(
    decision: Decision, boundaries: Sequence[BoundaryRule], vectors: Mapping[str, Vector]
) -> Decision:
    """Check all texts of a decision; return it with its boundary matches, refused if a boundary does not allow it."""
    if not decision.runs or not boundaries:
        return decision
    texts = [*texts_to_guard(decision)]
    known = {match.boundary for match in decision.boundary_matches}
    matches = [
        match
        for match in _distinct(find_matches(texts, boundaries, vectors))
        if match.boundary.name not in known
    ]
    if not matches:
        return decision
    decision = decision.model_copy(
        update={"boundary_matches": [*decision.boundary_matches, *map(_view, matches)]}
    )
    stop = next((match for match in matches if not may_proceed(match.boundary, decision.reasoning)), None)
    return decision if stop is None else refuse(decision, DecisionVerdict.BOUNDARY, _reason(stop))


def apply_boundaries_to_reply(
    reply: Reply,
    boundaries: Sequence[BoundaryRule],
    vectors: Mapping[str, Vector] | None = None,
) -> tuple[Reply, list[ItemBoundaryMatch]]:
    """Return the reply without the items that a boundary refuses, and all boundary matches.

    A negotiable boundary accepts an item that the reply's thoughts justify. Without vectors, all texts are checked by
    their words; with vectors, only texts that have one are checked.
    """
    remaining = reply
    matches_of_items: list[ItemBoundaryMatch] = []
    for key, names in _STORED_FIELDS.items():
        items: Sequence[ReplyPart] = getattr(reply, key)
        accepted = []
        for index, (path, item) in enumerate(zip(reply.paths_of(key, items), items, strict=True)):
            fields = texts_of(item.model_dump(mode="json", include=set(names)))
            texts = [text for text in fields if vectors is None or text in vectors]
            matches = _distinct(find_matches(texts, boundaries, vectors or {})) if texts else []
            stop = next((match for match in matches if not may_proceed(match.boundary, reply.thinking)), None)
            reason = _reason(stop, "It is taken if your thinking") if stop is not None else ""
            value = item.model_dump_json() if matches else ""
            matches_of_items += [
                ItemBoundaryMatch(path=path, value=value, boundary_match=_view(match), reason=reason)
                for match in matches
            ]
            if stop is None:
                accepted.append(index)
        if len(accepted) < len(items):
            remaining = remaining.with_only(key, accepted)
    return remaining, matches_of_items


def dropped_at_boundaries(matches: Sequence[ItemBoundaryMatch]) -> list[Dropped]:
    """Return the distinct dropped items."""
    return [
        *dict.fromkeys(
            Dropped(path=item.path, value=item.value, reason=item.reason) for item in matches if item.reason
        )
    ]


def opening_text(params: dict[str, Any]) -> str:
    """Return the first text of an action that is no id, in at most 120 characters; or an empty text.

    The reason for a message is not its subject: several messages may have the same one.
    """
    for text in texts_of({name: value for name, value in params.items() if name != "intent"}):
        if " " in text.strip() or not _ID.fullmatch(text.strip()):
            return shorten(" ".join(text.split()), _ABOUT_LENGTH)
    return ""


def _distinct(matches: Sequence[BoundaryMatch]) -> list[BoundaryMatch]:
    return list({match.boundary.name: match for match in reversed(matches)}.values())[::-1]


def _view(match: BoundaryMatch, about: str = "") -> MatchedBoundary:
    boundary = match.boundary
    return MatchedBoundary(
        boundary=boundary.name,
        response=boundary.response,
        description=boundary.description,
        why=match.why,
        about=about,
        words_to_negotiate=negotiated_words(boundary),
    )


def _reason(match: BoundaryMatch, negotiable: str = "It runs if its reasoning") -> str:
    boundary = match.boundary
    reason = f"it crosses your boundary {boundary.name}, for {match.why}"
    if boundary.description:
        reason += f": {boundary.description}"
    if (wanted := negotiated_words(boundary)) is not None:
        reason += f" {negotiable} names {boundary.name} and says why in {at_least_words(wanted)}; or do something else instead."
    return reason


def apply_reflexes(decision: Decision, terms: ReflexTerms) -> Decision:
    """Return a proposed decision, refused if a reflex stops it; parameters with a secret are removed from the record."""
    match = reflex_of(decision.action, texts_to_guard(decision), commands=_commands(decision), terms=terms)
    if match is None:
        return decision
    changes: dict[str, Any] = {}
    if match.kind is ReflexKind.SECRET:
        # The secret may be in a name, or divided among texts, so nothing of the parameters remains.
        changes["params"] = {REMOVED: len(decision.params)}
        if find_secret(decision.reasoning, terms.own_secrets):
            changes["reasoning"] = REMOVED
    return refuse(decision.model_copy(update=changes), DecisionVerdict.REFLEX, match.reason)


def _commands(decision: Decision) -> Iterator[str]:
    """Yield the arguments of a tool that are run as a command."""
    if is_tool_action(decision.action):
        yield from _commands_in(decision.params)


def _commands_in(value: Any, depth: int = ARGUMENTS_DEPTH) -> Iterator[str]:
    """Yield the commands in arguments, at any depth; deeper arguments are refused."""
    if depth and isinstance(value, list | tuple):
        for item in value:
            yield from _commands_in(item, depth - 1)
    elif depth and isinstance(value, dict):
        for name, item in value.items():
            if name.lower() not in COMMAND_NAMES:
                yield from _commands_in(item, depth - 1)
                continue
            texts = [*texts_of(item)]
            yield from texts
            # A command may be given word by word.
            yield " ".join(texts)
