"""The steps of `arbor demo`, an agent's first hour; each step returns the values to show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from secrets import token_hex

from django.db import OperationalError, ProgrammingError
from django.db.models import Count

from apps.agents.models import Agent, AgentState, BuiltinTemplate
from apps.fleet.administration import open_tenant
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import destroy_agent, start_agent
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.memories.models import Cluster, Edge, Episode, Memory
from apps.memories.services.clusters.clusters import cluster_members
from apps.memories.services.clusters.job import recluster_mind
from apps.memories.services.recall.recaller import recall
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.services import tenant_by_slug
from arbor.errors import ConfigurationInvalid
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.values import Recalled
from config.cli.kit.tenancy import ChosenAgent, actor
from config.database_errors import first_line

TENANT = "demo"
TEMPLATE = "Odalys"
#: So long that the agent has heartbeats only when the demo requests them.
INTERVAL = timedelta(days=30)
GOAL = "Know the story of the Halcyon"
GOAL_DONE = "I can tell who Mara and Teo are, what became of the boat, and what they plan next."
#: The most clusters that are shown.
_MAX_CLUSTERS = 3
#: Questions about the bundled conversation: a fact, a feeling, and one that only the next turn answers.
QUESTIONS = (
    "How many seals did they count on Skerra?",
    "Why does Mara want to sail on the first of October?",
    "What is wrong with Aurelio's lungs?",
)


@dataclass(frozen=True, kw_only=True)
class DemoState:
    """The state of an agent at one moment."""

    energy: float
    heartbeats: int
    #: State and progress by title.
    goals: dict[str, str]
    #: The number of memories by type.
    memories: dict[str, int]
    edges: int


@dataclass(frozen=True, kw_only=True)
class DemoCluster:
    """A cluster with its size and the memory nearest to its center."""

    name: str
    size: int
    clearest: str


@dataclass(frozen=True, kw_only=True)
class DemoMaintenance:
    """The results of maintenance of an agent's memories."""

    episodes: int
    #: The number of memories of the longest episode.
    longest: int
    #: The clusters, the most important first.
    clusters: list[DemoCluster]


def require_templates() -> None:
    """Raise ConfigurationInvalid, with the way to start, when the database is not prepared."""
    try:
        missing = "" if BuiltinTemplate.objects.using(OPS).filter(name=TEMPLATE).exists() else "no templates"
    except (OperationalError, ProgrammingError) as error:
        # A database without tables has no serving roles either.
        missing = first_line(error)
    if missing:
        raise ConfigurationInvalid(
            f"there is no prepared database for the demo ({missing}). `make up` creates and runs everything;"
            " on an external database, `arbor prepare` creates the tables and templates. Then run `arbor demo` again"
        )


def demo_tenant(slug: str | None) -> Tenant:
    """Return the tenant of the demo; the default one is created if missing."""
    if slug is None and not Tenant.objects.using(OPS).filter(slug=TENANT).exists():
        return open_tenant(slug=TENANT, name="Demo", actor=actor())
    return tenant_by_slug(TENANT if slug is None else slug)


@contextmanager
def demo_agent(tenant: Tenant, *, keep: bool) -> Iterator[Agent]:
    """Create and start an agent; destroy it at the end, also after an error, unless `keep`."""
    with tenant_transaction(tenant.id):
        agent = create_agent(
            name=f"demo-{token_hex(2)}", template_name=TEMPLATE, actor=actor(), interval=INTERVAL
        )
        start_agent(agent_id=agent.id, actor=actor())
    try:
        yield agent
    finally:
        if not keep:
            with tenant_transaction(tenant.id):
                destroy_agent(agent_id=agent.id, confirm=agent.name, actor=actor())


def add_demo_goal(agent: ChosenAgent) -> Goal:
    """Add a goal about the conversation."""
    with tenant_transaction(agent.tenant_id):
        return create_goal(
            agent_id=agent.id,
            title=GOAL,
            description=GOAL_DONE,
            layer=GoalLayer.OBJECTIVE,
            source=GoalSource.USER_REQUEST,
            state=GoalState.ACTIVE,
        )


def read_demo_state(agent: ChosenAgent) -> DemoState:
    """Read the current state of the agent."""
    with tenant_transaction(agent.tenant_id):
        state = AgentState.objects.get(agent_id=agent.id)
        memories = Memory.objects.filter(agent_id=agent.id).values("type").annotate(count=Count("id"))
        return DemoState(
            energy=state.energy,
            heartbeats=state.heartbeats,
            goals={
                goal.title: f"{goal.state}, {goal.fraction:.0%}"
                for goal in Goal.objects.filter(agent_id=agent.id).order_by("id")
            },
            memories={row["type"]: row["count"] for row in memories.order_by("type")},
            edges=Edge.objects.filter(agent_id=agent.id).count(),
        )


def recluster_memories(agent: ChosenAgent) -> None:
    """Recluster the agent's memories now, instead of waiting for maintenance."""
    recluster_mind(tenant_id=agent.tenant_id, agent_id=agent.id)


def read_demo_maintenance(agent: ChosenAgent) -> DemoMaintenance:
    """Read the results of maintenance of the agent's memories."""
    with tenant_transaction(agent.tenant_id):
        episodes = Episode.objects.filter(agent_id=agent.id)
        longest = episodes.order_by("-size", "id").first()
        clusters = Cluster.objects.filter(agent_id=agent.id).order_by("-importance", "-size", "id")[
            :_MAX_CLUSTERS
        ]
        return DemoMaintenance(
            episodes=episodes.count(),
            longest=longest.size if longest else 0,
            clusters=[
                DemoCluster(
                    name=cluster.name,
                    size=cluster.size,
                    # A cluster that maintenance dissolves at this moment has no members left.
                    clearest=next(
                        (member.content for member in cluster_members(cluster_id=cluster.id, limit=1)), ""
                    ),
                )
                for cluster in clusters
            ],
        )


def ask(agent: ChosenAgent, question: str, *, limit: int = 3) -> list[Recalled]:
    """Recall memories about a question."""
    return recall(
        tenant_id=agent.tenant_id, request=RecallRequest(agent_id=agent.id, text=question, limit=limit)
    )
