"""Parameters of inquiries, messages and `maintain`, and of the actions on goals and workflows."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from arbor.goals.values import TITLE_LENGTH, as_title
from arbor.heartbeat.params.memory import (
    CONTENT_LENGTH,
    LOWER_CASE,
    QUERY_LENGTH,
    REASON_LENGTH,
    ActionParams,
    Id,
    needed_text,
)
from arbor.models.json_text import parse_storable
from arbor.workflows.values import NAME_LENGTH

#: The least and the most goals of one brainstorm (seed 004, 3.2.5).
BRAINSTORMED = (2, 5)
#: The most queries of a shallow and of a deep inquiry (seed 004, 3.2.4).
SHALLOW_QUERIES = 2
DEEP_QUERIES = 5
#: Characters of a message to users, and of its subject line.
MESSAGE_LENGTH = 4_000
SUBJECT_LENGTH = 150
#: Characters of an agent's name or id.
AGENT_LENGTH = 200
#: Characters of the result of a delegated step.
STEP_OUTPUT_LENGTH = 8_000
#: Asks for every key, as strict modes require.
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
Query = Annotated[str, StringConstraints(min_length=1, max_length=QUERY_LENGTH)]


class ReprioritizeParams(ActionParams):
    """A goal and its new state."""

    goal_id: Id = Field(description="id of the goal")
    state: Annotated[Literal["active", "queued", "backburner"], LOWER_CASE] = Field(
        description="active, queued or backburner"
    )


def _as_title(value: object) -> object:
    return as_title(value) if isinstance(value, str) else value


class PotentialGoal(ActionParams):
    """A potential goal."""

    title: Annotated[
        str, StringConstraints(min_length=1, max_length=TITLE_LENGTH), BeforeValidator(_as_title)
    ]
    description: Annotated[str, StringConstraints(max_length=2_000)] = ""
    rationale: Annotated[str, StringConstraints(max_length=REASON_LENGTH)] = ""
    state: Annotated[Literal["queued", "backburner"], LOWER_CASE] = "queued"


class BrainstormGoalsParams(ActionParams):
    """Potential goals."""

    goals: Annotated[
        tuple[PotentialGoal, ...],
        WithJsonSchema({"type": "array", "items": _POTENTIAL_GOAL, "maxItems": BRAINSTORMED[1]}),
    ] = Field(
        min_length=BRAINSTORMED[0],
        max_length=BRAINSTORMED[1],
        description="2 to 5 goals you might want: title, description (what done looks like), rationale, state (queued or backburner)",
    )


class InquireParams(ActionParams):
    """A question."""

    question: str = needed_text("what you want to know", most=QUERY_LENGTH)


class InquireShallowParams(InquireParams):
    """A question and its searches."""

    queries: tuple[Query, ...] = Field(
        (), max_length=SHALLOW_QUERIES, description="1 or 2 web searches for it (default: the question)"
    )


class InquireDeepParams(InquireParams):
    """A question and its searches."""

    queries: tuple[Query, ...] = Field(
        (),
        max_length=DEEP_QUERIES,
        description="3 to 5 web searches for it (default: made from the question)",
    )


class ReachOutUserParams(ActionParams):
    """A message to the users."""

    intent: str = needed_text("why it is worth their attention", most=REASON_LENGTH)
    content: str = needed_text("the message itself", most=MESSAGE_LENGTH)
    subject: str = Field(
        "",
        max_length=SUBJECT_LENGTH,
        description=f"its subject line, up to {SUBJECT_LENGTH} characters (default: the beginning)",
    )


class ReachOutAgentParams(ActionParams):
    """A message to another agent."""

    to: str = needed_text("its name or id", most=AGENT_LENGTH)
    content: str = needed_text("the message itself", most=MESSAGE_LENGTH)


def _as_input(value: object) -> object:
    """Read an input that is an object or its text; values that are no texts become JSON."""
    try:
        if isinstance(value, str):
            value = parse_storable(value or "{}")
        if isinstance(value, dict):
            return {key: part if isinstance(part, str) else json.dumps(part) for key, part in value.items()}
    except ValueError:
        # Refused, because it is no object of texts.
        return value
    return {} if value is None else value


class StartWorkflowParams(ActionParams):
    """A workflow and its input."""

    workflow: str = needed_text("its name", most=NAME_LENGTH)
    input: Annotated[dict[str, str], BeforeValidator(_as_input), WithJsonSchema({"type": "string"})] = Field(
        {}, description='its input as a JSON object of texts, such as {"topic": "rain"} (default: none)'
    )


class CompleteStepParams(ActionParams):
    """A step of a workflow that is delegated to the agent, and its result."""

    step: str = needed_text("the step's id", most=100)
    output: str = needed_text("the result, or why the step cannot be done", most=STEP_OUTPUT_LENGTH)
    failed: Annotated[bool, BeforeValidator(lambda value: value is not None and value)] = Field(
        False, description="true if the step cannot be done (default: false)"
    )


class ReachOutPublicParams(ReachOutUserParams):
    """A message to everybody."""

    platform: str = Field(
        "", max_length=100, description="name of the public channel (default: the only one there is)"
    )


class MaintainTarget(StrEnum):
    """The kinds of things to maintain."""

    #: Something remembered.
    MEMORY = "memory"
    #: A statement that the agent takes to be true.
    BELIEF = "belief"
    #: A cluster of memories.
    CLUSTER = "cluster"


class MaintainVerdict(StrEnum):
    """The verdicts about the target (seed 004, 3.2.3: "still valid? needs update?")."""

    #: The target is right as it is.
    KEEP = "keep"
    #: The target's content changes, or its importance or confidence.
    REVISE = "revise"
    #: The target is excluded from recall.
    RETIRE = "retire"
    #: The target may be wrong.
    DOUBT = "doubt"


#: The parameters of which a revision needs at least one, and their names in words, by target.
_CHANGES: dict[MaintainTarget, tuple[tuple[str, ...], str]] = {
    MaintainTarget.MEMORY: (("content", "importance"), "content or importance"),
    MaintainTarget.BELIEF: (("confidence",), "confidence"),
    MaintainTarget.CLUSTER: (("content",), "content, its name"),
}


class MaintainParams(ActionParams):
    """The target, and the verdict about it: without a verdict it is shown, with one it is changed."""

    target: Annotated[MaintainTarget, LOWER_CASE] = Field(description="memory, belief or cluster")
    id: str = Field(min_length=1, max_length=200, description="its id; of a cluster its id or its name")
    verdict: Annotated[MaintainVerdict | None, LOWER_CASE] = Field(
        None,
        description="keep, revise, retire or doubt; leave it out to be shown the thing and what is around it",
    )
    content: str | None = Field(
        None,
        min_length=1,
        max_length=CONTENT_LENGTH,
        description=f"to revise: what it says now, up to {CONTENT_LENGTH} characters; for a cluster its name",
    )
    importance: float | None = Field(
        None, ge=0, le=1, description="to revise a memory: how much it matters now, 0 to 1"
    )
    confidence: float | None = Field(
        None, ge=0, le=1, description="to revise or doubt a belief: how sure you are now, 0 to 1"
    )
    reason: str = Field(
        "",
        max_length=REASON_LENGTH,
        description=f"why, up to {REASON_LENGTH} characters; needed with a verdict",
    )

    @model_validator(mode="after")
    def _verdict_is_complete(self) -> Self:
        if self.verdict is None:
            return self
        if not self.reason:
            raise ValueError("a verdict needs a reason")
        if self.verdict is MaintainVerdict.RETIRE and self.target is not MaintainTarget.MEMORY:
            raise ValueError(f"only a memory can be retired; revise or doubt the {self.target}")
        names, what = _CHANGES[self.target]
        if self.verdict is MaintainVerdict.REVISE and all(getattr(self, name) is None for name in names):
            raise ValueError(f"to revise a {self.target}, give {what}")
        return self

    @property
    def unused(self) -> frozenset[str]:
        """Return the parameters of another target or verdict."""
        judging = frozenset(("content", "importance", "confidence", "reason"))
        if self.verdict is None:
            return judging
        names, _ = _CHANGES[self.target]
        doubts_belief = self.verdict is MaintainVerdict.DOUBT and self.target is MaintainTarget.BELIEF
        changes = names if self.verdict is MaintainVerdict.REVISE or doubts_belief else ()
        return judging - {*changes, "reason"}
