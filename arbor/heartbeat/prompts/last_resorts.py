"""Reductions beyond the token shares, for a prompt that would leave no room for a reply.

Most texts are shortened before entries are dropped; `LAST_RESORTS` is the order.
"""

from __future__ import annotations

from arbor.heartbeat.prompts.reductions import (
    CLIPPED_PERCEPT,
    SHORT_TEXT,
    Clip,
    Reduction,
    ShortenedList,
    ShortenedTexts,
    ended_first,
    first_first,
    last_first,
    with_part,
)
from arbor.heartbeat.situation import Situation, ToolOffer
from arbor.heartbeat.views import MatchedBoundary
from arbor.models.token_counts import CountTokens
from arbor.quotations import shorten

#: Characters of the content of each percept, once nothing else can be shortened.
SHORT_PERCEPT = 300


class RepeatedBoundaries:
    """Keep one match of each boundary, that of the earliest percept: later percepts may have to wait."""

    section = "boundaries"

    def reduce(self, situation: Situation, excess: int, count: CountTokens) -> tuple[Situation, int]:
        """Drop all further matches; return the situation without them, and their number."""
        places = {percept.id: place for place, percept in enumerate(situation.percepts)}
        earliest: dict[str, MatchedBoundary] = {}
        for match in sorted(situation.boundary_matches, key=lambda match: places.get(match.about, 0)):
            earliest.setdefault(match.boundary, match)
        left = [match for match in situation.boundary_matches if match is earliest[match.boundary]]
        dropped = len(situation.boundary_matches) - len(left)
        return (with_part(situation, "boundary_matches", left) if dropped else situation), dropped


class ShortenedTools:
    """Describes tools of MCP servers by the beginning of their texts and the types of their required arguments."""

    section = "tools"

    def reduce(self, situation: Situation, excess: int, count: CountTokens) -> tuple[Situation, int]:
        """Shorten the descriptions of all tools; none is dropped, because the list of actions has them too."""
        offers = [
            offer if offer.tool is None else offer.model_copy(update={"tool": _short_tool(offer.tool)})
            for offer in situation.actions
        ]
        is_reduced = offers != situation.actions
        return (situation.model_copy(update={"actions": offers}) if is_reduced else situation), 0


def _short_tool(tool: ToolOffer) -> ToolOffer:
    required = tool.arguments.get("required", [])
    properties = {
        name: {key: value for key, value in schema.items() if key == "type"}
        for name, schema in tool.arguments.get("properties", {}).items()
        if name in required
    }
    arguments = {"type": "object", "properties": properties, "required": required}
    return tool.model_copy(
        update={"description": shorten(tool.description, SHORT_TEXT), "arguments": arguments}
    )


#: The reductions, the least important first.
LAST_RESORTS: tuple[Reduction, ...] = (
    ShortenedTexts("last_heartbeat"),
    ShortenedList("last_heartbeat.outcomes", first_first()),
    ShortenedTexts("preferences"),
    ShortenedTexts("beliefs"),
    ShortenedTexts("aspects", "identity"),
    # Concerns and questions stay whole: an agent settles them in their own words.
    ShortenedTexts("working_memory.thoughts"),
    ShortenedTexts("recent"),
    ShortenedTexts("relevant"),
    RepeatedBoundaries(),
    ShortenedTexts("boundary_matches", "boundaries"),
    Clip(lambda _: True, CLIPPED_PERCEPT),
    ShortenedTools(),
    ShortenedTexts("plans", "plan"),
    ShortenedTexts("goals"),
    ShortenedTexts("intents"),
    ShortenedTexts("contradictions"),
    ShortenedTexts("proposals"),
    ShortenedTexts("notices"),
    ShortenedList("preferences", last_first()),
    ShortenedList("beliefs", last_first()),
    ShortenedList("working_memory.curiosity", first_first()),
    ShortenedList("working_memory.concerns", first_first()),
    ShortenedList("recent", first_first()),
    # The other percepts wait for the next heartbeat, which follows at once where users wrote them.
    ShortenedList("percepts", last_first(1)),
    Clip(lambda _: True, SHORT_PERCEPT),
    ShortenedList("boundary_matches", last_first(1), "boundaries"),
    ShortenedList("shown_plan.dependencies", last_first(), "plan"),
    ShortenedList("shown_plan.steps", ended_first(1), "plan"),
    ShortenedList("relevant", last_first()),
    ShortenedList("aspects", last_first(), "identity"),
)
