"""Parameters of the actions on goals, of inquiries and of messages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from arbor.goals.values import as_title
from arbor.heartbeat.params.parts import (
    QUERY_LENGTH,
    REASON_LENGTH,
    ActionParams,
    Id,
    lower,
    needed_text,
    text_list,
)

#: Seed 004, 3.2.5.
BRAINSTORMED = (2, 5)


class ReprioritizeParams(ActionParams):
    """A goal and its new state."""

    goal_id: Annotated[Id, Field(description="id of the goal")]
    state: Annotated[
        Literal["active", "queued", "backburner"],
        BeforeValidator(lower),
        Field(description="active, queued or backburner"),
    ]


def _as_title(value: object) -> object:
    return as_title(value) if isinstance(value, str) else value


class PotentialGoal(ActionParams):
    """A potential goal."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=300), BeforeValidator(_as_title)]
    description: Annotated[str, StringConstraints(max_length=2_000)] = ""
    rationale: Annotated[str, StringConstraints(max_length=REASON_LENGTH)] = ""
    state: Annotated[Literal["queued", "backburner"], BeforeValidator(lower)] = "queued"


_POTENTIAL_GOAL = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "description": {"type": "string", "description": "what done looks like"},
        "rationale": {"type": "string", "description": "why it is worth wanting"},
        "state": {"type": "string", "enum": ["queued", "backburner"]},
    },
    "required": ["title", "description", "rationale", "state"],
    "additionalProperties": False,
}
_BRAINSTORM = "2 to 5 goals you might want: title, description (what done looks like), rationale, state (queued or backburner)"


class BrainstormGoalsParams(ActionParams):
    """Potential goals."""

    goals: Annotated[
        tuple[PotentialGoal, ...],
        Field(min_length=BRAINSTORMED[0], max_length=BRAINSTORMED[1], description=_BRAINSTORM),
        WithJsonSchema(
            {
                "type": "array",
                "items": _POTENTIAL_GOAL,
                "maxItems": BRAINSTORMED[1],
                "description": _BRAINSTORM,
            }
        ),
    ]


#: Seed 004, 3.2.4: queries of a shallow and of a deep inquiry, at most.
SHALLOW_QUERIES = 2
DEEP_QUERIES = 5
#: Characters of a message to users, and of its subject line.
MESSAGE_LENGTH = 4_000
SUBJECT_LENGTH = 150

Query = Annotated[str, StringConstraints(min_length=1, max_length=QUERY_LENGTH)]


class InquireParams(ActionParams):
    """A question."""

    question: Annotated[str, needed_text("what you want to know", most=QUERY_LENGTH)]


class InquireShallowParams(InquireParams):
    """A question and its searches."""

    queries: Annotated[
        tuple[Query, ...],
        Field(max_length=SHALLOW_QUERIES, description="1 or 2 web searches for it (default: the question)"),
        text_list("1 or 2 web searches for it (default: the question)", most=SHALLOW_QUERIES),
    ] = ()


class InquireDeepParams(InquireParams):
    """A question and its searches."""

    queries: Annotated[
        tuple[Query, ...],
        Field(
            max_length=DEEP_QUERIES,
            description="3 to 5 web searches for it (default: made from the question)",
        ),
        text_list("3 to 5 web searches for it (default: made from the question)", most=DEEP_QUERIES),
    ] = ()


class ReachOutUserParams(ActionParams):
    """A message to the users."""

    intent: Annotated[str, needed_text("why it is worth their attention", most=REASON_LENGTH)]
    content: Annotated[str, needed_text("the message itself", most=MESSAGE_LENGTH)]
    subject: Annotated[
        str,
        StringConstraints(max_length=SUBJECT_LENGTH),
        Field(description=f"its subject line, up to {SUBJECT_LENGTH} characters (default: the beginning)"),
    ] = ""


class ReachOutPublicParams(ReachOutUserParams):
    """A message to everybody."""

    platform: Annotated[
        str,
        StringConstraints(max_length=100),
        Field(description="name of the public channel (default: the only one there is)"),
    ] = ""
