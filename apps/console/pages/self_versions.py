"""Read an agent's self-knowledge, its versions, and the differences from one version to today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apps.agents.models import Agent
from apps.console.forms import agent_choices, chosen_agent
from apps.selves.services.history import (
    SelfVersion,
    VersionDiff,
    diff_versions,
    latest_version,
    versions_of,
)
from apps.selves.services.self_knowledge import load_self_knowledge
from arbor.errors import NotFound
from arbor.selves.history import BIRTH, PartKind
from arbor.selves.self_knowledge import Quality

_MAX_DIGITS = 9


@dataclass(frozen=True, kw_only=True)
class SelfVersionsPage:
    """The page: the choice of an agent, its self today and its versions, and one version compared with today."""

    agents: Sequence[tuple[str, str]]
    agent: Agent | None
    #: Each heading, with the traits, values or capabilities below it.
    qualities: Sequence[tuple[str, Sequence[Quality]]] = ()
    versions: Sequence[SelfVersion] = ()
    latest: int = BIRTH
    diff: VersionDiff | None = None
    parts: Sequence[str] = tuple(PartKind)


def read_self_versions(parameters: Mapping[str, str]) -> SelfVersionsPage:
    """Read the page for the parameters of its address; a version that is not offered is not compared."""
    agent = chosen_agent(parameters)
    agents = agent_choices()
    if agent is None:
        return SelfVersionsPage(agents=agents, agent=None)
    knowledge = load_self_knowledge(agent.id)
    return SelfVersionsPage(
        agents=agents,
        agent=agent,
        qualities=(
            ("Traits", knowledge.traits),
            ("Values", knowledge.values),
            ("Capabilities", knowledge.capabilities),
        ),
        versions=versions_of(agent.id),
        latest=latest_version(agent.id),
        diff=_diff(agent, parse_version(parameters.get("earlier", ""))),
    )


def parse_version(text: str) -> int | None:
    """Parse the number of a version in an address or a form; None for another text, and for more digits than versions have."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None


def _diff(agent: Agent, earlier: int | None) -> VersionDiff | None:
    if earlier is None:
        return None
    try:
        return diff_versions(agent_id=agent.id, earlier=earlier)
    except NotFound:
        return None
