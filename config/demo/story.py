"""The story that `arbor demo` tells: an agent's first hour, in steps that each return what there is to see."""

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
from arbor.memory.recall_request import RecallRequest
from arbor.memory.values import Recalled
from config.cli.tenancy import ChosenAgent, actor

TENANT = "demo"
TEMPLATE = "Odalys"
#: It beats when the story says so, and hardly ever by itself.
INTERVAL = timedelta(days=30)
GOAL = "Know the story of the Halcyon"
GOAL_DONE = "I can tell who Mara and Teo are, what became of the boat, and what they plan next."
#: How many themes are told of.
_THEMES = 3
#: Asked of the bundled conversation: something said, something felt, something that only the turn beside it answers.
QUESTIONS = (
    "How many seals did they count on Skerra?",
    "Why does Mara want to sail on the first of October?",
    "What is wrong with Aurelio's lungs?",
)


@dataclass(frozen=True, kw_only=True)
class DemoState:
    """What an agent has at one moment."""

    energy: float
    beats: int
    #: DemoState and progress by title.
    goals: dict[str, str]
    #: How many, by type.
    memories: dict[str, int]
    edges: int


@dataclass(frozen=True, kw_only=True)
class DemoCluster:
    """What several memories gather around, and the one that is nearest to its centre."""

    name: str
    size: int
    clearest: str


@dataclass(frozen=True, kw_only=True)
class Grown:
    """What maintenance has made of an agent's memories."""

    episodes: int
    #: How many memories the longest episode has.
    longest: int
    #: The weightiest first.
    themes: list[DemoCluster]


def require_templates() -> None:
    """Raise ConfigurationInvalid, saying how to start, when the database is not prepared."""
    try:
        missing = "" if BuiltinTemplate.objects.using(OPS).filter(name=TEMPLATE).exists() else "no templates"
    except (OperationalError, ProgrammingError) as error:
        # Without its tables it does not know our roles either.
        missing = str(error).strip().splitlines()[0]
    if missing:
        raise ConfigurationInvalid(
            f"there is no prepared database to tell the story in ({missing}). `make up` makes and runs everything;"
            " on a database of your own, `arbor prepare` makes the tables and templates. Then `arbor demo` again"
        )


def home(slug: str | None) -> Tenant:
    """Return the tenant the story plays in; its own is made when it is not there."""
    if slug is None and not Tenant.objects.using(OPS).filter(slug=TENANT).exists():
        return open_tenant(slug=TENANT, name="Demo", actor=actor())
    return tenant_by_slug(slug or TENANT)


@contextmanager
def an_agent(tenant: Tenant, *, keep: bool) -> Iterator[Agent]:
    """Create and start an agent; destroy it at the end, however that comes, unless it is to be kept."""
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


def wish(agent: ChosenAgent) -> Goal:
    """Give the agent a goal about what it has read."""
    with tenant_transaction(agent.tenant_id):
        return create_goal(
            agent_id=agent.id,
            title=GOAL,
            description=GOAL_DONE,
            layer=GoalLayer.OBJECTIVE,
            source=GoalSource.USER_REQUEST,
            state=GoalState.ACTIVE,
        )


def look_at(agent: ChosenAgent) -> DemoState:
    """Return what the agent has now."""
    with tenant_transaction(agent.tenant_id):
        state = AgentState.objects.get(agent_id=agent.id)
        memories = Memory.objects.filter(agent_id=agent.id).values("type").annotate(count=Count("id"))
        return DemoState(
            energy=state.energy,
            beats=state.beats,
            goals={
                goal.title: f"{goal.state}, {goal.fraction:.0%}"
                for goal in Goal.objects.filter(agent_id=agent.id).order_by("id")
            },
            memories={row["type"]: row["count"] for row in memories.order_by("type")},
            edges=Edge.objects.filter(agent_id=agent.id).count(),
        )


def maintain_clusters(agent: ChosenAgent) -> None:
    """Do for this one agent what maintenance does by the clock: find its themes."""
    recluster_mind(agent.tenant_id, agent.id)


def grown(agent: ChosenAgent) -> Grown:
    """Return what maintenance has made of the agent's memories."""
    with tenant_transaction(agent.tenant_id):
        episodes = Episode.objects.filter(agent_id=agent.id)
        longest = episodes.order_by("-size", "id").first()
        themes = Cluster.objects.filter(agent_id=agent.id).order_by("-importance", "-size", "id")[:_THEMES]
        return Grown(
            episodes=episodes.count(),
            longest=longest.size if longest else 0,
            themes=[
                DemoCluster(
                    name=theme.name,
                    size=theme.size,
                    clearest=cluster_members(cluster_id=theme.id, limit=1)[0].content,
                )
                for theme in themes
            ],
        )


def ask(agent: ChosenAgent, question: str, *, limit: int = 3) -> list[Recalled]:
    """Return what the agent remembers about a question."""
    return recall(
        tenant_id=agent.tenant_id, request=RecallRequest(agent_id=agent.id, text=question, limit=limit)
    )
