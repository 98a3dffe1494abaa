"""Parameters of the action `maintain`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from arbor.heartbeat.params.parts import CONTENT_LENGTH, REASON_LENGTH, ActionParams, lower


class MaintainTarget(StrEnum):
    """The kinds of things to maintain."""

    #: Something remembered.
    MEMORY = "memory"
    #: A statement that the agent takes to be true.
    BELIEF = "belief"
    #: A cluster of memories.
    CLUSTER = "cluster"


class Judgement(StrEnum):
    """The verdicts about the target (seed 004, 3.2.3: "still valid? needs update?")."""

    #: It is right as it is.
    KEEP = "keep"
    #: It says something else now, or matters more or less.
    REVISE = "revise"
    #: It is excluded from recall.
    RETIRE = "retire"
    #: It may be wrong.
    DOUBT = "doubt"


class MaintainParams(ActionParams):
    """The target, and the verdict about it: without a verdict it is shown, with one it is changed."""

    target: Annotated[
        MaintainTarget, BeforeValidator(lower), Field(description="memory, belief or cluster (a theme)")
    ]
    id: Annotated[
        str,
        StringConstraints(min_length=1, max_length=200),
        Field(description="its id; of a cluster its id or its name"),
    ]
    verdict: Annotated[
        Judgement | None,
        BeforeValidator(lower),
        Field(
            description="keep, revise, retire or doubt; leave it out to be shown the thing and what is around it"
        ),
        WithJsonSchema({"type": "string", "enum": [verdict.value for verdict in Judgement]}),
    ] = None
    content: Annotated[
        str | None,
        StringConstraints(min_length=1, max_length=CONTENT_LENGTH),
        Field(
            description=f"to revise: what it says now, up to {CONTENT_LENGTH} characters; for a cluster its name"
        ),
        WithJsonSchema({"type": "string"}),
    ] = None
    importance: Annotated[
        float | None,
        Field(ge=0, le=1, description="to revise a memory: how much it matters now, 0 to 1"),
        WithJsonSchema({"type": "number"}),
    ] = None
    confidence: Annotated[
        float | None,
        Field(ge=0, le=1, description="to revise or doubt a belief: how sure you are now, 0 to 1"),
        WithJsonSchema({"type": "number"}),
    ] = None
    reason: Annotated[
        str,
        StringConstraints(max_length=REASON_LENGTH),
        Field(description=f"why, up to {REASON_LENGTH} characters; needed with a verdict"),
    ] = ""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.verdict is None:
            return self
        if not self.reason:
            raise ValueError("a verdict needs a reason")
        if self.verdict is Judgement.RETIRE and self.target is not MaintainTarget.MEMORY:
            raise ValueError(f"only a memory can be retired; revise or doubt the {self.target}")
        if self.verdict is Judgement.REVISE and not self._changes:
            what = {"memory": "content or importance", "belief": "confidence", "cluster": "content, its name"}
            raise ValueError(f"to revise a {self.target}, give {what[self.target]}")
        return self

    @property
    def _changes(self) -> bool:
        match self.target:
            case MaintainTarget.MEMORY:
                return self.content is not None or self.importance is not None
            case MaintainTarget.BELIEF:
                return self.confidence is not None
            case MaintainTarget.CLUSTER:
                return self.content is not None
