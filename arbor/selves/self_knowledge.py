"""Self-knowledge: the traits, values and capabilities of an agent, as its system prompt shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from arbor.quotations import shorten
from arbor.selves.values import QUALITIES, TEXT_LENGTH, AspectKind, BeliefStatus

#: The most characters of a trait, value or capability in the system prompt, as in a template.
LINE_LENGTH = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Quality:
    """A trait, value or capability with its strength, importance or proficiency from 0 to 1."""

    name: str
    strength: float
    questioned: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SelfKnowledge:
    """The traits, values and capabilities of an agent, each in the order in which the agent acquired them."""

    traits: tuple[Quality, ...] = ()
    values: tuple[Quality, ...] = ()
    capabilities: tuple[Quality, ...] = ()


def self_knowledge_of(rows: Iterable[Mapping[str, Any]]) -> SelfKnowledge:
    """Return the self-knowledge among an agent's aspects, given as columns by name.

    In the order of ids: a new one is added at the end, so that the beginning of the system prompt, which providers cache,
    stays the same.
    """
    known = sorted((row for row in rows if row["kind"] in QUALITIES), key=lambda row: str(row["id"]))
    traits, values, capabilities = (
        tuple(
            Quality(
                name=shorten(" ".join(row["content"][:TEXT_LENGTH].split()), LINE_LENGTH),
                strength=row["strength"],
                questioned=row["status"] == BeliefStatus.QUESTIONED,
            )
            for row in known
            if row["kind"] == kind
        )
        for kind in (AspectKind.TRAIT, AspectKind.VALUE, AspectKind.CAPABILITY)
    )
    return SelfKnowledge(traits=traits, values=values, capabilities=capabilities)
