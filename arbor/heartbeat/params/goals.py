"""Parameters of the actions on goals."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from arbor.goals.values import as_title
from arbor.heartbeat.params.parts import REASON_LENGTH, ActionParams, Id, lower

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
