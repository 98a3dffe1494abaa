"""What each action of a heartbeat takes: typed, bounded, and described in the words that a model reads."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from arbor.memory.relations import Relation
from arbor.memory.values import MemoryType

QUERY_LENGTH = 500
CONTENT_LENGTH = 4_000
INSIGHT_LENGTH = 2_000
REASON_LENGTH = 500
MAX_RECALLED = 20
# The origin of seed 000 recalls five unless asked for more.
DEFAULT_RECALLED = 5
#: Memories that one artifact or insight may name as its ground. Ours.
MAX_MATERIALS = 20
#: Seed 004, 3.2.5.
BRAINSTORMED = (2, 5)


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def text_list(description: str, *, most: int) -> Any:
    """Return what a schema says of a list of texts that may be left out."""
    items = {"type": "string"}
    return WithJsonSchema({"type": "array", "items": items, "maxItems": most, "description": description})


class ActionParams(BaseModel):
    """The parameters of an action. What is not known is ignored, and the decision says so."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True, allow_inf_nan=False)


Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class RecallParams(ActionParams):
    """What to look for."""

    query: Annotated[
        str,
        StringConstraints(min_length=1, max_length=QUERY_LENGTH),
        Field(description=f"what to look for, 1 to {QUERY_LENGTH} characters"),
    ]
    limit: Annotated[
        int,
        Field(
            ge=1, le=MAX_RECALLED, description=f"how many, 1 to {MAX_RECALLED} (default {DEFAULT_RECALLED})"
        ),
    ] = DEFAULT_RECALLED


class RememberParams(ActionParams):
    """What to keep."""

    content: Annotated[
        str,
        StringConstraints(min_length=1, max_length=CONTENT_LENGTH),
        Field(description=f"what to keep, 1 to {CONTENT_LENGTH} characters"),
    ]
    type: Annotated[
        MemoryType,
        BeforeValidator(_lower),
        Field(description="episodic, semantic, procedural or strategic (default semantic)"),
    ] = MemoryType.SEMANTIC
    importance: Annotated[
        float | None,
        Field(ge=0, le=1, description="0 to 1 (default: by what it says)"),
        WithJsonSchema(
            {
                "type": ["number", "null"],
                "minimum": 0,
                "maximum": 1,
                "description": "0 to 1 (default: by what it says)",
            }
        ),
    ] = None


class ReflectParams(ActionParams):
    """What was noticed."""

    insight: Annotated[
        str,
        StringConstraints(min_length=1, max_length=INSIGHT_LENGTH),
        Field(description=f"the pattern or lesson you notice, 1 to {INSIGHT_LENGTH} characters; it is kept"),
    ]
    focus: Annotated[
        str,
        StringConstraints(max_length=QUERY_LENGTH),
        Field(description=f"what it is about, up to {QUERY_LENGTH} characters (default none)"),
    ] = ""
    rests_on: Annotated[
        tuple[Id, ...],
        Field(
            max_length=MAX_MATERIALS, description=f"ids of up to {MAX_MATERIALS} memories that it rests on"
        ),
        text_list(f"ids of up to {MAX_MATERIALS} memories that it rests on", most=MAX_MATERIALS),
    ] = ()


class ConnectParams(ActionParams):
    """What belongs together, and how."""

    from_id: Annotated[Id, Field(description="id of a memory, goal or belief you see")]
    to_id: Annotated[Id, Field(description="id of another one you see")]
    relation: Annotated[Relation, BeforeValidator(_lower), Field(description="one of " + ", ".join(Relation))]


class ReprioritizeParams(ActionParams):
    """Which goal goes where in the backlog."""

    goal_id: Annotated[Id, Field(description="id of the goal")]
    state: Annotated[
        Literal["active", "queued", "backburner"],
        BeforeValidator(_lower),
        Field(description="active, queued or backburner"),
    ]


class RestParams(ActionParams):
    """Nothing."""


class ObserveParams(ActionParams):
    """Nothing."""


class ReviewGoalsParams(ActionParams):
    """Nothing."""


class MaintainTarget(StrEnum):
    """What can be maintained."""

    #: Something remembered.
    MEMORY = "memory"
    #: Something held to be so.
    BELIEF = "belief"
    #: A theme of memories.
    CLUSTER = "cluster"


class Judgement(StrEnum):
    """What is to become of what was looked at (seed 004, 3.2.3: "still valid? needs update?")."""

    #: It is right as it is.
    KEEP = "keep"
    #: It says something else now, or matters more or less.
    REVISE = "revise"
    #: It is not to come to mind any more.
    RETIRE = "retire"
    #: It may be wrong.
    DOUBT = "doubt"


class MaintainParams(ActionParams):
    """What to look at, or what was judged of it: without a verdict it is shown, with one it is changed."""

    target: Annotated[
        MaintainTarget, BeforeValidator(_lower), Field(description="memory, belief or cluster (a theme)")
    ]
    id: Annotated[
        str,
        StringConstraints(min_length=1, max_length=200),
        Field(description="its id; of a cluster its id or its name"),
    ]
    verdict: Annotated[
        Judgement | None,
        BeforeValidator(_lower),
        Field(
            description="keep, revise, retire or doubt; leave it out to be shown the thing and what is around it"
        ),
        WithJsonSchema({"type": "string", "enum": [each.value for each in Judgement]}),
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


class ArtifactKind(StrEnum):
    """What a synthesis makes (seed 004, 3.2.4)."""

    #: What follows from the materials.
    CONCLUSION = "conclusion"
    #: A text about them.
    TEXT = "text"
    #: Something new.
    CREATIVE = "creative"


class SynthesizeParams(ActionParams):
    """What was made, and of what."""

    topic: Annotated[
        str,
        StringConstraints(min_length=1, max_length=QUERY_LENGTH),
        Field(description=f"what it is about, 1 to {QUERY_LENGTH} characters"),
    ]
    content: Annotated[
        str,
        StringConstraints(min_length=1, max_length=CONTENT_LENGTH),
        Field(description=f"the work itself, whole, 1 to {CONTENT_LENGTH} characters; it is kept"),
    ]
    materials: Annotated[
        tuple[Id, ...],
        Field(max_length=MAX_MATERIALS, description=f"ids of up to {MAX_MATERIALS} memories it is made from"),
        text_list(f"ids of up to {MAX_MATERIALS} memories it is made from", most=MAX_MATERIALS),
    ] = ()
    kind: Annotated[
        ArtifactKind,
        BeforeValidator(_lower),
        Field(description="conclusion, text or creative (default conclusion)"),
    ] = ArtifactKind.CONCLUSION


class PotentialGoal(ActionParams):
    """Something that might be worth wanting."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    description: Annotated[str, StringConstraints(max_length=2_000)] = ""
    rationale: Annotated[str, StringConstraints(max_length=REASON_LENGTH)] = ""
    state: Annotated[Literal["queued", "backburner"], BeforeValidator(_lower)] = "queued"


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
    """What might be worth wanting."""

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
