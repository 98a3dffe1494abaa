"""Find agents by name or id, and read their model and genome."""

from __future__ import annotations

import re
from uuid import UUID

from django.db.models import Q

from apps.agents.models import Agent
from apps.tenants.names import list_names
from arbor.agents.genome import AgentGenome
from arbor.errors import Invalid, NotFound
from arbor.ids import read_id
from arbor.models.json_text import is_storable

NAME_LENGTH = 64
#: Characters of a wrong name that an error quotes.
_QUOTED = 200
#: Names must be easy to type on a command line: letters of any script, digits, and punctuation of names.
_NAME = re.compile(rf"[^\W_][\w .'-]{{0,{NAME_LENGTH - 1}}}")


def valid_name(name: str) -> str:
    """Strip an agent's name and return it. Raises Invalid for a name that is empty, too long or has other characters."""
    stripped = name.strip()
    if not _NAME.fullmatch(stripped):
        raise Invalid(
            f"an agent's name begins with a letter or digit and has at most {NAME_LENGTH} letters, digits, blanks,"
            f" dots, hyphens, apostrophes and underscores; got {name[:_QUOTED]!r}"
        )
    return stripped


def agents_named(name: str) -> list[Agent]:
    """Return the agents of a name with their tenants, ignoring case unless a name matches exactly."""
    if not is_storable(name):
        return []
    matches = list(Agent.objects.filter(name__iexact=name.strip()).select_related("tenant"))
    return [agent for agent in matches if agent.name == name.strip()] or matches


def agent_by_name(name: str) -> Agent:
    """Find the current tenant's agent by name, ignoring case; an exact match takes precedence.

    Raises NotFound with the names that exist.
    """
    matches = agents_named(name)
    if len(matches) == 1:
        return matches[0]
    known = list_names(
        Agent.objects.order_by("name").values_list("name", flat=True),
        none="none yet; create one with `arbor agent create`",
    )
    raise NotFound(f"there is no agent {name[:_QUOTED]!r}; there is: {known}")


def agent_by_id(agent_id: UUID) -> Agent:
    """Find the current tenant's agent by id; raises NotFound."""
    agent: Agent | None = Agent.objects.filter(id=agent_id).first()
    if agent is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    return agent


def own_model(agent: Agent) -> str:
    """Return the model of an agent, else the default of its tenant; empty: the installation's."""
    model: str = agent.model or agent.tenant.default_model
    return model


def find_agent(ref: UUID | str) -> Agent:
    """Find the current tenant's agent by its id, as a UUID or its text, its public id, or its name regardless of case.

    Raises NotFound.
    """
    if isinstance(ref, UUID):
        return agent_by_id(ref)
    named = ref.strip()
    if not named or not is_storable(named):
        raise NotFound(f"an agent is named by its id or its name, got {ref[:_QUOTED]!r}")
    by_id = Q(public_id=named)
    if (agent_id := read_id(named)) is not None:
        by_id |= Q(id=agent_id)
    row: Agent | None = Agent.objects.filter(by_id).first()
    return row or agent_by_name(named)


def genome_of(agent: Agent) -> AgentGenome | None:
    """Return the agent's genome, if its template has one."""
    return AgentGenome.model_validate(agent.genome) if agent.genome else None
