"""Definitions of workflows: DOT graphs whose steps have a kind and its parameters.

A step's `type` is a `WorkflowStepKind`. Texts name values in braces: `{input.topic}`, `{steps.draft}`, `{steps.review.score}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache

from arbor.errors import PipelineInvalid
from arbor.pipeline.graph import load_graph
from arbor.pipeline.values import Graph, PipelineNode, PipelineNodeKind
from arbor.workflows.durations import parse_duration
from arbor.workflows.values import NAME_LENGTH, WorkflowStepKind

#: The kinds whose steps name an agent, or use that of the workflow.
KINDS_WITH_AGENT = frozenset({WorkflowStepKind.PROMPT, WorkflowStepKind.DELEGATE})
#: The most characters of a step's text.
TEXT_LENGTH = 8_000
MAX_STEPS = 100
MAX_RETRIES = 10
MAX_TOKENS = 8_192
DEFAULT_TOKENS = 1_024
#: The longest delay between two tries.
MAX_BACKOFF = timedelta(days=1)
#: Definitions that a process caches.
_CACHED = 256

_NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{NAME_LENGTH - 1}}}")
_PLACEHOLDER = re.compile(r"\{(input|steps)\.([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z_][A-Za-z0-9_]*)*)\}")
#: The attribute with the text of each kind, and the default time that a step waits for its answer.
_TEXT_OF: Mapping[WorkflowStepKind, str] = {
    WorkflowStepKind.PROMPT: "prompt",
    WorkflowStepKind.APPROVAL: "question",
    WorkflowStepKind.DELEGATE: "task",
    WorkflowStepKind.NOTE: "text",
}
_WAITS: Mapping[WorkflowStepKind, timedelta] = {
    WorkflowStepKind.PROMPT: timedelta(hours=1),
    WorkflowStepKind.APPROVAL: timedelta(days=7),
    WorkflowStepKind.DELEGATE: timedelta(days=1),
}
_RETRY_PARAMETERS = frozenset({"retries", "backoff"})
#: Parameters by kind, besides the text.
_PARAMETERS: Mapping[WorkflowStepKind, frozenset[str]] = {
    WorkflowStepKind.PROMPT: frozenset({"agent", "model", "format", "max_tokens", "timeout"})
    | _RETRY_PARAMETERS,
    WorkflowStepKind.APPROVAL: frozenset({"timeout"}),
    WorkflowStepKind.DELEGATE: frozenset({"agent", "format", "timeout"}) | _RETRY_PARAMETERS,
    WorkflowStepKind.WAIT: frozenset({"for"}),
    WorkflowStepKind.NOTE: frozenset(),
}
#: Parameters that only some kinds have.
_ALL_PARAMETERS = frozenset().union(*_PARAMETERS.values(), _TEXT_OF.values())
#: Attributes that the engine reads on every step.
_OF_ENGINE = frozenset({"type", "retry_target", "fallback_retry_target", "max_visits"})
#: Attributes by which Graphviz draws a node, by its reference; they have no effect on a run.
_DRAWING_NAMES = """
area class color colorscheme comment distortion fillcolor fixedsize fontcolor fontname fontsize gradientangle group height href id image
imagepos imagescale label labelloc layer margin nojustify ordering orientation penwidth peripheries pin pos rects regular root samplepoints
shape shapefile showboxes sides skew sortv style target tooltip URL vertices width xlabel xlp z
"""
_OF_DRAWING = frozenset(_DRAWING_NAMES.split())
_DEFAULT_RETRIES = {WorkflowStepKind.PROMPT: 2}
_DEFAULT_BACKOFF = timedelta(seconds=30)


@dataclass(frozen=True, kw_only=True, slots=True)
class Placeholder:
    """A value that a text names in braces: of the input, or of an earlier step."""

    #: `input` or `steps`.
    root: str
    name: str
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.root, self.name, *self.path))


@dataclass(frozen=True, kw_only=True, slots=True)
class StepSpec:
    """One step of a definition."""

    name: str
    kind: WorkflowStepKind
    #: The prompt, question, task or text, with values in braces.
    text: str = ""
    #: The agent's name; empty: the workflow's.
    agent: str = ""
    #: `provider/model`; empty: the agent's.
    model: str = ""
    #: Whether the output must be JSON.
    is_json: bool = False
    #: Tries after the first one, and the delay before the second one, which doubles.
    retries: int = 0
    backoff: timedelta = _DEFAULT_BACKOFF
    #: The time that a step waits for its answer, or that a wait step lasts.
    waits: timedelta | None = None
    max_tokens: int = DEFAULT_TOKENS

    def delay_before(self, attempt: int) -> timedelta:
        """Return the delay before try number `attempt`, from 2 on."""
        return min(MAX_BACKOFF, self.backoff * (1 << max(0, attempt - 2)))


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowDefinition:
    """A validated definition: the graph, whose steps have their own names as handlers, and the steps by name."""

    graph: Graph
    steps: Mapping[str, StepSpec]
    #: The names of the values of the input that texts use.
    inputs: tuple[str, ...]

    def steps_without_agent(self) -> tuple[str, ...]:
        """Return the steps that ask an agent and name none, so that they need that of the workflow."""
        return tuple(
            step.name for step in self.steps.values() if step.kind in KINDS_WITH_AGENT and not step.agent
        )

    @property
    def agents(self) -> tuple[str, ...]:
        """Return the agents that steps name."""
        return tuple(sorted({step.agent for step in self.steps.values() if step.agent}))


@lru_cache(maxsize=_CACHED)
def read_definition(text: str) -> WorkflowDefinition:
    """Parse and check a definition. Raises PipelineInvalid with every fault of the graph, or else of its steps."""
    graph = load_graph(text, handlers=frozenset(WorkflowStepKind))
    faults: list[str] = []
    steps: dict[str, StepSpec] = {}
    for node in graph.nodes.values():
        if node.kind is PipelineNodeKind.STEP:
            steps[node.name] = _read_step(node, faults)
    if not 1 <= len(steps) <= MAX_STEPS:
        faults.append(f"a workflow has 1 to {MAX_STEPS} steps, got {len(steps)}")
    for step in steps.values():
        faults += _check_references(step, steps)
    if faults:
        raise PipelineInvalid(faults=faults)
    nodes = {
        name: replace(node, handler=name) if node.kind is PipelineNodeKind.STEP else node
        for name, node in graph.nodes.items()
    }
    named = [value for step in steps.values() for value in find_placeholders(step.text)]
    inputs = {value.name for value in named if value.root == "input"}
    return WorkflowDefinition(graph=replace(graph, nodes=nodes), steps=steps, inputs=tuple(sorted(inputs)))


def read_new_definition(text: str) -> WorkflowDefinition:
    """Parse and check a definition that is to be stored.

    Raises PipelineInvalid as `read_definition` does, and for two faults that stored definitions may have: unknown attributes of steps, and
    a backoff without retries.
    """
    definition = read_definition(text)
    faults = []
    for name, step in definition.steps.items():
        written = definition.graph.nodes[name].attributes
        known = _parameters_of(step.kind) | _OF_ENGINE
        for unknown in sorted(written.keys() - known - _OF_DRAWING):
            faults.append(
                f"node {name}: a {step.kind} step has no attribute {unknown!r}; it has {', '.join(sorted(known))},"
                " and those by which Graphviz draws a node"
            )
        if written.get("backoff") and not step.retries:
            faults.append(
                f"node {name}: backoff is the delay before another try; give retries too, 1 to {MAX_RETRIES}"
            )
    if faults:
        raise PipelineInvalid(faults=faults)
    return definition


def find_placeholders(text: str) -> Iterator[Placeholder]:
    """Yield the values that a text names, each once."""
    yield from dict.fromkeys(map(_placeholder, _PLACEHOLDER.finditer(text)))


def substitute(text: str, value_of: Callable[[Placeholder], str]) -> str:
    """Return the text with the value of each placeholder."""
    return _PLACEHOLDER.sub(lambda match: value_of(_placeholder(match)), text)


def _placeholder(match: re.Match[str]) -> Placeholder:
    return Placeholder(root=match[1], name=match[2], path=tuple(match[3].split(".")[1:]))


def _read_step(node: PipelineNode, faults: list[str]) -> StepSpec:
    where, written = f"node {node.name}", node.attributes
    kind = WorkflowStepKind(node.handler)
    if not _NAME.fullmatch(node.name):
        faults.append(
            f"{where}: a step's name has lower-case letters, digits and _, beginning with a letter, at most {NAME_LENGTH}"
        )
    allowed = _parameters_of(kind)
    for name in sorted(_ALL_PARAMETERS & written.keys() - allowed):
        faults.append(f"{where}: a {kind} step has no {name}; it has {', '.join(sorted(allowed))}")
    return StepSpec(
        name=node.name,
        kind=kind,
        text=_read_text(node, kind, faults),
        agent=written.get("agent", "").strip(),
        model=_read_model(written, where, faults),
        is_json=_read_format(written, where, faults),
        retries=_read_count(
            written, "retries", _DEFAULT_RETRIES.get(kind, 0), (0, MAX_RETRIES), where, faults
        ),
        backoff=_read_duration(written, "backoff", where, faults) or _DEFAULT_BACKOFF,
        waits=_read_wait(kind, written, where, faults),
        max_tokens=_read_count(written, "max_tokens", DEFAULT_TOKENS, (1, MAX_TOKENS), where, faults),
    )


def _parameters_of(kind: WorkflowStepKind) -> frozenset[str]:
    """Return the parameters of a kind, with its text."""
    return _PARAMETERS[kind] | ({_TEXT_OF[kind]} if kind in _TEXT_OF else set())


def _read_text(node: PipelineNode, kind: WorkflowStepKind, faults: list[str]) -> str:
    name = _TEXT_OF.get(kind)
    if name is None:
        return ""
    text = node.attributes.get(name, "").replace("\\n", "\n").replace("\\l", "\n").strip()
    if not 1 <= len(text) <= TEXT_LENGTH:
        faults.append(
            f'node {node.name}: a {kind} step has a {name} of 1 to {TEXT_LENGTH:,} characters ({name}="…"), got {len(text):,}'
        )
    return text


def _read_model(written: Mapping[str, str], where: str, faults: list[str]) -> str:
    model = written.get("model", "").strip()
    provider, _, name = model.partition("/")
    if model and not (provider and name):
        faults.append(f"{where}: a model is named `provider/model`, got {model!r}")
    return model


def _read_format(written: Mapping[str, str], where: str, faults: list[str]) -> bool:
    wanted = written.get("format", "text")
    if wanted not in ("text", "json"):
        faults.append(f"{where}: format is text or json, got {wanted!r}")
    return wanted == "json"


def _read_count(
    written: Mapping[str, str],
    name: str,
    default: int,
    bounds: tuple[int, int],
    where: str,
    faults: list[str],
) -> int:
    text, (least, most) = written.get(name, ""), bounds
    if not text:
        return default
    value = int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else -1
    if not least <= value <= most:
        faults.append(f"{where}: {name} is a whole number, {least} to {most}, got {text!r}")
        return default
    return value


def _read_wait(
    kind: WorkflowStepKind, written: Mapping[str, str], where: str, faults: list[str]
) -> timedelta | None:
    if kind is not WorkflowStepKind.WAIT:
        return _read_duration(written, "timeout", where, faults) or _WAITS.get(kind)
    if not written.get("for"):
        faults.append(f'{where}: a wait step says how long it waits (for="1h")')
    return _read_duration(written, "for", where, faults)


def _read_duration(written: Mapping[str, str], name: str, where: str, faults: list[str]) -> timedelta | None:
    text = written.get(name, "")
    if not text:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        faults.append(f"{where}: {name}: {error}")
        return None


def _check_references(step: StepSpec, steps: Mapping[str, StepSpec]) -> Iterator[str]:
    """Yield a fault for each value of another step that does not exist."""
    for value in find_placeholders(step.text):
        if value.root == "steps" and value.name not in steps:
            yield f"node {step.name}: there is no step {value.name!r} to take a value from; known: {', '.join(steps)}"
