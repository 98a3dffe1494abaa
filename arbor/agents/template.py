"""Templates of agents, parsed from Markdown with YAML front matter."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from importlib import resources
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from arbor.agents.capabilities import CapabilityUri
from arbor.agents.character import Character
from arbor.agents.energy import EnergyPolicy
from arbor.agents.genome import (
    LINE_LENGTH,
    AgentGenome,
    AgentPart,
    Line,
    Lines,
    OptionalLine,
    OptionalProse,
    Prose,
)
from arbor.agents.markdown_file import FileFault, file_invalid
from arbor.agents.template_file import ReadTemplate, read_template_file, translate_errors
from arbor.errors import CapabilityInvalid, ConfigurationInvalid, TemplateInvalid
from arbor.goals.likeness import same_goal
from arbor.goals.values import (
    DEFAULT_PRIORITY,
    MAX_ACTIVE,
    MAX_OF_LAYER,
    MAX_PRIORITY,
    MAX_QUEUED,
    GoalLayer,
    GoalType,
    as_title,
    text_key,
)
from arbor.knowledge.skills import MAX_SKILLS
from arbor.knowledge.subscriptions import MAX_SUBSCRIPTIONS, SubscriptionRequest
from arbor.models.handles import Handle
from arbor.quotations import clip

# The capacity of a new agent: 20 thoughts and 10 interests fit into working memory (the defaults of the origin of seed 000), the active
# and the queued goals into the backlog.
MAX_THOUGHTS = 20
MAX_INTERESTS = 10
MAX_GOALS = MAX_ACTIVE + MAX_QUEUED
MAX_CAPABILITIES = 100
MAX_ACTIONS = 100
MAX_INTERVAL_S = 30 * 24 * 3600

# A template's name is typed on the command line and is part of addresses.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class TrustTier(StrEnum):
    """The degrees of trust in an agent, the lowest first; a template requests the initial one."""

    #: Unknown.
    UNTRUSTED = "untrusted"
    #: On trial.
    PROBATIONARY = "probationary"
    #: Has earned trust; a template may also say `established`.
    TRUSTED = "trusted"
    #: Has earned trust over a long time.
    VETERAN = "veteran"
    #: Decides for itself.
    AUTONOMOUS = "autonomous"


class TemplateSource(StrEnum):
    """The origin of a template."""

    #: Comes with Arbor.
    BUILTIN = "builtin"
    #: Written by a tenant.
    USER = "user"


# A goal that can be finished is an objective; a goal that never ends is an aspiration.
_ASPIRATIONS = frozenset({GoalType.MAINTAIN, GoalType.AVOID, GoalType.COLLABORATE, GoalType.IMPROVE})


class InitialGoal(AgentPart):
    """An initial goal of an agent. Priority from 0 to 100."""

    type: GoalType
    #: One line; without one, the description.
    title: OptionalLine = ""
    description: Prose
    priority: Annotated[int, Field(strict=True, ge=0, le=MAX_PRIORITY)] = DEFAULT_PRIORITY

    @property
    def heading(self) -> str:
        """Return the title on one line, or the description cut to a title's length."""
        return clip(as_title(self.title) or as_title(self.description), LINE_LENGTH)

    @property
    def layer(self) -> GoalLayer:
        """Return the layer of the backlog that this kind of goal belongs to."""
        return GoalLayer.ASPIRATION if self.type in _ASPIRATIONS else GoalLayer.OBJECTIVE


class CapabilityRequest(AgentPart):
    """A capability that a template requests for its agents; it grants nothing."""

    resource: Line
    description: OptionalProse = ""
    constraints: dict[str, JsonValue] = {}

    @field_validator("resource")
    @classmethod
    def _in_canonical_form(cls, resource: str) -> str:
        try:
            return str(CapabilityUri.parse(resource))
        except CapabilityInvalid as exc:
            raise ValueError(str(exc)) from exc


class TemplateMetadata(BaseModel, frozen=True, extra="allow", allow_inf_nan=False):
    """The model that the template was written for. Other keys are stored unchanged."""

    provider: OptionalLine = ""
    model: OptionalLine = ""

    @property
    def handle(self) -> str:
        """Return `provider/model`, or an empty text for the installation's default model."""
        return f"{self.provider}/{self.model}" if self.model else ""

    @model_validator(mode="after")
    def _provider_and_model_together(self) -> Self:
        if bool(self.provider) != bool(self.model):
            raise ValueError("provider and model go together: give both, or neither")
        return self


class TemplateSpec(AgentPart):
    """A valid template. `model_dump(mode="json")` and `model_validate` are inverse."""

    name: Line
    version: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40)]
    source: TemplateSource = TemplateSource.USER
    trust_tier: TrustTier = TrustTier.UNTRUSTED
    description: OptionalProse = ""
    metadata: TemplateMetadata = TemplateMetadata()
    character: Character
    values: Lines = ()
    initial_interests: Annotated[tuple[Line, ...], Field(max_length=MAX_INTERESTS)] = ()
    initial_thoughts: Annotated[tuple[Prose, ...], Field(max_length=MAX_THOUGHTS)] = ()
    initial_goals: Annotated[tuple[InitialGoal, ...], Field(max_length=MAX_GOALS)] = ()
    required_capabilities: Annotated[tuple[CapabilityRequest, ...], Field(max_length=MAX_CAPABILITIES)] = ()
    genome: AgentGenome | None = None
    #: The heartbeat's actions that an agent of this template may use; all others are refused.
    actions: Annotated[tuple[Line, ...], Field(min_length=1, max_length=MAX_ACTIONS)]
    #: DOT text of the template's own pipeline; empty: the default graph.
    pipeline: Annotated[str, StringConstraints(max_length=50_000)] = ""
    #: Seconds from one heartbeat to the next; None: the installation's.
    heartbeat_interval_s: Annotated[int, Field(strict=True, ge=1, le=MAX_INTERVAL_S)] | None = None
    #: The energy policy; it takes precedence over the tenant's.
    energy: EnergyPolicy = EnergyPolicy()
    #: The names of the skills that its agents begin with, in the order of their prompts.
    skills: Annotated[tuple[Line, ...], Field(max_length=MAX_SKILLS)] = ()
    #: The signals that its agents are subscribed to from their birth on.
    subscriptions: Annotated[tuple[SubscriptionRequest, ...], Field(max_length=MAX_SUBSCRIPTIONS)] = ()

    @field_validator("name")
    @classmethod
    def _can_be_typed(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(f"must be a letter, then up to 63 letters, digits, - or _, got {name!r}")
        return name

    @field_validator("initial_goals")
    @classmethod
    def _goals_are_distinct(cls, goals: tuple[InitialGoal, ...]) -> tuple[InitialGoal, ...]:
        # A backlog has no two open goals of one title, so the agent could not be created.
        for at, goal in enumerate(goals):
            for before, other in enumerate(goals[:at]):
                if text_key(goal.heading) == text_key(other.heading):
                    raise ValueError(f"goals {before} and {at} have the same title: {goal.heading!r}")
                if same_goal(goal.heading, other.heading):
                    raise ValueError(
                        f"the titles of goals {before} and {at} say the same: {other.heading!r}, {goal.heading!r}"
                    )
        return goals

    @field_validator("trust_tier", mode="before")
    @classmethod
    def _established_means_trusted(cls, tier: object) -> object:
        return TrustTier.TRUSTED if tier == "established" else tier


def parse_template(text: str, *, known_actions: Collection[str]) -> TemplateSpec:
    """Parse a template's Markdown.

    Raises TemplateInvalid; its message and `faults` list all errors, each with line and path.
    """
    template_file = read_template_file(text)
    faults = list(template_file.faults)
    spec = None
    if template_file.parsed.front:
        try:
            spec = TemplateSpec.model_validate(template_file.parts)
        except ValidationError as exc:
            faults += translate_errors(exc, template_file, TemplateSpec)
        faults += _action_faults(template_file, known_actions)
        faults += _repeated_faults(template_file, "actions")
        faults += _repeated_faults(template_file, "skills")
        faults += _model_faults(template_file, spec.metadata.handle if spec is not None else "")
        faults += _goal_faults(template_file, spec.initial_goals if spec is not None else ())
    if spec is None or faults:
        name = template_file.parts.get("name")
        raise file_invalid(TemplateInvalid, kind="template", name=name, faults=faults)
    return spec


def load_builtin_templates(*, known_actions: Collection[str]) -> tuple[tuple[str, TemplateSpec], ...]:
    """Load the built-in templates: pairs (Markdown, TemplateSpec), sorted by file name."""
    folder = resources.files("arbor.agents") / "templates"
    loaded = []
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".md"):
            text = file.read_text(encoding="utf-8")
            loaded.append((text, parse_template(text, known_actions=known_actions)))
    return tuple(loaded)


def _action_faults(template_file: ReadTemplate, known_actions: Collection[str]) -> Iterator[FileFault]:
    actions = template_file.parts.get("actions")
    if not isinstance(actions, list):
        return
    # A longer list is a fault of its own.
    for at, action in enumerate(actions[:MAX_ACTIONS]):
        line, place = template_file.locate(("actions", at))
        if isinstance(action, str) and action not in known_actions:
            known = ", ".join(sorted(known_actions))
            yield FileFault(line=line, place=place, message=f"unknown action {action!r}; known: {known}")


def _repeated_faults(template_file: ReadTemplate, key: str) -> Iterator[FileFault]:
    """Yield the faults of entries that a list has twice; a list that is too long is a fault of its own."""
    entries = template_file.parts.get(key)
    if not isinstance(entries, list) or len(entries) > MAX_ACTIONS:
        return
    for at, entry in enumerate(entries):
        if entry in entries[:at]:
            line, place = template_file.locate((key, at))
            yield FileFault(line=line, place=place, message=f"{entry!r} is listed twice; keep one")


def _model_faults(template_file: ReadTemplate, handle: str) -> Iterator[FileFault]:
    """Yield the fault of a model that no agent can have."""
    try:
        if handle:
            Handle.parse(handle)
    except ConfigurationInvalid as error:
        line, place = template_file.locate(("metadata",))
        yield FileFault(line=line, place=place, message=str(error))


def _goal_faults(template_file: ReadTemplate, goals: Sequence[InitialGoal]) -> Iterator[FileFault]:
    """Yield the faults of goals that the backlog of a new agent would refuse, so that no agent could be created.

    Not a rule of `TemplateSpec`, by which stored templates are read.
    """
    for at, goal in enumerate(goals):
        if not goal.heading:
            line, place = template_file.locate(("initial_goals", at))
            yield FileFault(line=line, place=place, message="its title has control characters only")
    layers = [goal.layer for goal in goals]
    for layer, most in MAX_OF_LAYER.items():
        if (count := layers.count(layer)) > most:
            line, place = template_file.locate(("initial_goals",))
            message = f"an agent has at most {most} goals of the layer {layer}, got {count}"
            yield FileFault(line=line, place=place, message=message)
