"""The sections of a seed: the table of each, its owner, and why other tables are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any

from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from apps.agents.models import AgentPolicy, AgentState, Percept
from apps.fleet.seeds.checks import (
    Values,
    check_belief,
    check_boundary,
    check_neighbors,
    check_proposal,
    check_self_change,
    check_state,
)
from apps.goals.models import Goal, GoalMemoryLink, Intent, Plan, PlanStep, ProgressNote, Satisfaction
from apps.knowledge.models import AgentKnowledge
from apps.memories.models import (
    BufferItem,
    Cluster,
    ClusterMember,
    ClusterRelation,
    CodeSnippet,
    Concept,
    Edge,
    Episode,
    Memory,
    MemoryAccess,
    MemoryConcept,
    Pin,
    Practice,
    Upkeep,
)
from apps.selves.models import (
    Belief,
    BeliefEvidence,
    Boundary,
    Experience,
    IdentityAspect,
    PeerModel,
    Preference,
    Proposal,
    SelfChange,
)
from apps.tenants.fields import PackedJSON, WithinTenant
from apps.tenants.models import TenantModel
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanStatus

#: Fields that are carried apart from the values, or computed from them.
_VECTORS = (HalfVectorField, SparseVectorField)


class SeedGroup(StrEnum):
    """A part of an agent that a restore can skip."""

    #: Name, character, genome, pipeline, model.
    PROFILE = "profile"
    #: Identity aspects, preferences, beliefs, boundaries, proposals, self history.
    SELF = "self"
    #: Memories with episodes, concepts, clusters and relations, buffer items, code snippets.
    MEMORIES = "memories"
    #: Goals with plans, intents, progress notes and satisfactions.
    GOALS = "goals"
    #: Working memory, drives, mood, experiences, peers, pending percepts.
    STATE = "state"
    #: Budget, hours, models, limits, and the categories of documents.
    POLICY = "policy"


@dataclass(frozen=True, kw_only=True)
class ColumnCheck:
    """A column of a section, the values that it may have, and its default."""

    column: str
    #: None: any value of its types.
    allowed: frozenset[Any] | None
    #: The types that its JSON may have.
    types: tuple[type, ...]
    #: Whether a text must be a time that a row can be read with.
    is_time: bool
    default: Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class SeedSection:
    """A table of an agent's rows in a seed."""

    name: str
    model: type[TenantModel]
    group: SeedGroup
    #: The reference to the row that names the agent; empty: the row itself names the agent.
    parent: str = ""
    #: Columns that are not carried: they are locks, or refer to what is not in the seed.
    omit: frozenset[str] = frozenset()
    #: Columns that seeds of older versions name otherwise: the name today by the former one.
    renamed: Mapping[str, str] = MappingProxyType({})
    #: Columns whose JSON is a list of texts.
    texts: frozenset[str] = frozenset()
    #: Whether its rows are part of the digest of the agent's state.
    digested: bool = True
    #: Whether rows are only ever added, so that a restore removes none.
    appended: bool = False
    #: The condition of the rows that are carried, in SQL about the row `t`; empty: all rows.
    only: str = ""
    #: The update that makes room in a unique index before rows are restored: SQL from after SET to before the last condition of
    #: WHERE; empty: no update.
    frees: str = ""
    #: Changes the values of a row before they are written to the seed.
    prepare: Callable[[Values], Values] | None = None
    #: Checks the values of a row of a seed beyond their types. Raises SeedInvalid.
    check: Callable[[Values], None] | None = None

    @cached_property
    def columns(self) -> tuple[Any, ...]:
        """Return the fields that a seed carries as values."""
        return tuple(
            field
            for field in self.model._meta.concrete_fields
            if not (
                field.generated
                or field.column in {"tenant_id", "agent_id", *self.omit}
                or isinstance(field, _VECTORS)
            )
        )

    def with_names_of_today(self, values: Values) -> Values:
        """Return the values of a row by the names that its columns have today."""
        return {self.renamed.get(name, name): value for name, value in values.items()}

    @cached_property
    def checks(self) -> tuple[ColumnCheck, ...]:
        """Return the carried columns with their values that are allowed, and the value of a row without the column."""
        return tuple(
            ColumnCheck(
                column=str(field.column),
                allowed=_allowed(field),
                types=_types(field),
                is_time=isinstance(field, models.DateTimeField),
                default=field.get_default,
            )
            for field in self.columns
        )

    @cached_property
    def vectors(self) -> tuple[Any, ...]:
        """Return the fields with vectors of half-precision numbers."""
        return tuple(
            field for field in self.model._meta.concrete_fields if isinstance(field, HalfVectorField)
        )

    @cached_property
    def packed(self) -> frozenset[str]:
        """Return the columns whose JSON is stored as compressed bytes."""
        return frozenset(str(field.column) for field in self.columns if isinstance(field, PackedJSON))

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Return the columns of the primary key, without tenant and agent."""
        names = (str(field.column) for field in self.model._meta.pk_fields)
        return tuple(name for name in names if name not in ("tenant_id", "agent_id"))

    @cached_property
    def references(self) -> dict[str, tuple[str, bool]]:
        """Return the tables that the carried columns refer to, by column, and whether the reference may be empty."""
        return {
            str(field.column): (field.remote_field.model._meta.label, bool(field.null))
            for field in self.columns
            if isinstance(field, WithinTenant)
        }


def _allowed(field: Any) -> frozenset[Any] | None:
    if not field.choices:
        return None
    return frozenset(value for value, _ in field.flatchoices) | ({None} if field.null else frozenset())


def _types(field: Any) -> tuple[type, ...]:
    """Return the types of a column's values in JSON."""
    types: tuple[type, ...] = (str,)
    if isinstance(field, models.JSONField | PackedJSON):
        default = field.get_default()
        types = (type(default),) if isinstance(default, dict | list) else (object,)
    elif isinstance(field, models.BooleanField):
        types = (bool,)
    elif isinstance(field, models.IntegerField | models.FloatField | models.DecimalField):
        types = (int, float)
    return (*types, type(None)) if field.null else types


def _released(values: Values) -> Values:
    """Return the values of an intent without the lock of a heartbeat."""
    if values["status"] == IntentStatus.LOCKED:
        values["status"] = IntentStatus.PENDING.value
    return values


#: In the order in which rows are written: referenced tables come first.
SECTIONS: tuple[SeedSection, ...] = (
    SeedSection(
        name="policy",
        model=AgentPolicy,
        group=SeedGroup.POLICY,
        renamed={"daily_beats": "daily_heartbeats"},
    ),
    SeedSection(
        name="knowledge", model=AgentKnowledge, group=SeedGroup.POLICY, texts=frozenset({"categories"})
    ),
    SeedSection(
        name="state",
        model=AgentState,
        group=SeedGroup.STATE,
        renamed={
            "beats": "heartbeats",
            "idle_beats": "idle_heartbeats",
            "stale_beats": "stale_heartbeats",
            "last_beat_at": "last_heartbeat_at",
        },
        check=check_state,
    ),
    SeedSection(name="episodes", model=Episode, group=SeedGroup.MEMORIES),
    SeedSection(
        name="memories",
        model=Memory,
        group=SeedGroup.MEMORIES,
        omit=frozenset({"revision", "embedding_model"}),
    ),
    SeedSection(name="accesses", model=MemoryAccess, group=SeedGroup.MEMORIES, parent="memory"),
    SeedSection(name="pins", model=Pin, group=SeedGroup.MEMORIES),
    SeedSection(name="practices", model=Practice, group=SeedGroup.MEMORIES, parent="memory"),
    SeedSection(name="upkeep", model=Upkeep, group=SeedGroup.MEMORIES, digested=False, check=check_neighbors),
    SeedSection(name="concepts", model=Concept, group=SeedGroup.MEMORIES, texts=frozenset({"ancestors"})),
    SeedSection(name="memory_concepts", model=MemoryConcept, group=SeedGroup.MEMORIES, parent="memory"),
    SeedSection(name="clusters", model=Cluster, group=SeedGroup.MEMORIES, texts=frozenset({"keywords"})),
    SeedSection(name="cluster_members", model=ClusterMember, group=SeedGroup.MEMORIES, parent="cluster"),
    SeedSection(name="cluster_relations", model=ClusterRelation, group=SeedGroup.MEMORIES, parent="source"),
    SeedSection(name="relations", model=Edge, group=SeedGroup.MEMORIES),
    SeedSection(
        name="buffer", model=BufferItem, group=SeedGroup.MEMORIES, omit=frozenset({"embedding_model"})
    ),
    SeedSection(name="code", model=CodeSnippet, group=SeedGroup.MEMORIES),
    SeedSection(name="aspects", model=IdentityAspect, group=SeedGroup.SELF),
    SeedSection(name="preferences", model=Preference, group=SeedGroup.SELF),
    SeedSection(name="beliefs", model=Belief, group=SeedGroup.SELF, check=check_belief),
    SeedSection(name="evidence", model=BeliefEvidence, group=SeedGroup.SELF, parent="belief"),
    SeedSection(
        name="boundaries",
        model=Boundary,
        group=SeedGroup.SELF,
        texts=frozenset({"patterns", "examples"}),
        check=check_boundary,
    ),
    SeedSection(name="proposals", model=Proposal, group=SeedGroup.SELF, check=check_proposal),
    SeedSection(
        name="self_history",
        model=SelfChange,
        group=SeedGroup.SELF,
        digested=False,
        appended=True,
        check=check_self_change,
    ),
    SeedSection(name="goals", model=Goal, group=SeedGroup.GOALS),
    SeedSection(name="notes", model=ProgressNote, group=SeedGroup.GOALS, parent="goal"),
    # A goal has one active plan: another one may be active in the seed.
    SeedSection(
        name="plans",
        model=Plan,
        group=SeedGroup.GOALS,
        texts=frozenset({"dependencies", "met"}),
        frees=f"status = '{PlanStatus.DRAFT}' WHERE t.status = '{PlanStatus.ACTIVE}' AND",
    ),
    SeedSection(name="steps", model=PlanStep, group=SeedGroup.GOALS, parent="plan"),
    SeedSection(
        name="intents",
        model=Intent,
        group=SeedGroup.GOALS,
        omit=frozenset({"locked_by", "locked_at"}),
        prepare=_released,
    ),
    SeedSection(name="goal_memories", model=GoalMemoryLink, group=SeedGroup.GOALS, parent="goal"),
    SeedSection(
        name="satisfactions", model=Satisfaction, group=SeedGroup.GOALS, digested=False, appended=True
    ),
    SeedSection(
        name="experiences", model=Experience, group=SeedGroup.STATE, renamed={"tick": "heartbeat_number"}
    ),
    SeedSection(
        name="peers",
        model=PeerModel,
        group=SeedGroup.STATE,
        renamed={"last_tick": "last_heartbeat_number"},
        texts=frozenset({"interests"}),
    ),
    SeedSection(
        name="percepts",
        model=Percept,
        group=SeedGroup.STATE,
        # Pending events are no part of the agent's state: a restore neither deletes an event that arrived after the capture,
        # nor makes an event pending again that a heartbeat has taken in since.
        digested=False,
        appended=True,
        # A sealed message opens with a private key only, which no seed has.
        omit=frozenset({"heartbeat_id", "sealed"}),
        only="t.heartbeat_id IS NULL AND t.sealed IS NULL",
    ),
)
BY_NAME = {section.name: section for section in SECTIONS}

#: The sections before those of SECTIONS, and the tables that they are read from.
PROFILE, REQUESTS = "profile", "requests"
OTHER_SECTIONS: dict[str, str] = {"agents.Agent": PROFILE, "agents.RequestedCapability": REQUESTS}
#: Tables that are computed again from what a seed has, and how.
DERIVED: dict[str, str] = {
    "memories.Mind": "the header names the embedding model; jobs set the times of their runs",
    "memories.Term": "counted from the words of the memories",
    "memories.Activation": "a cache, which fades within hours",
    "memories.NextEmbedding": "vectors of a move to another embedder, which begins anew",
    "selves.ProposalCalibration": "counted again each day from the proposals",
    "memories.EmbeddingCacheEntry": "a cache of vectors",
}
#: Tables that no seed has, and why.
LEFT_OUT: dict[str, str] = {
    "agents.AgentKey": "a private key never leaves its row; the signatures have the public keys",
    "agents.AgentEndorsement": "a statement of this installation about its own agent",
    "authority.CapabilityGrant": "a right at this installation; the section `requests` names the resources",
    "authority.ActionApproval": "decisions of this installation's people",
    "authority.AgentTrust": "trust is earned at one installation",
    "authority.ModeRule": "trust is earned at one installation",
    "authority.TierChange": "trust is earned at one installation",
    "authority.TrustScore": "trust is earned at one installation",
    "authority.CapabilityUse": "uses of a right at this installation",
    "agents.HeartbeatSchedule": "the time of the next heartbeat is the dispatcher's; the section `profile` has the interval",
    "agents.Template": "a tenant's own text, which agents only name",
    "knowledge.AgentSkill": "chosen by people from the skills of their tenant, which a seed does not have",
    "knowledge.SignalSubscription": "about peers and documents of the tenant, with a position in this installation's signals",
    "knowledge.Skill": "a tenant's own text, which agents only name",
    "knowledge.SkillVersion": "a tenant's own text, which agents only name",
    "heartbeats.Heartbeat": "a record of this installation; experiences and memories are what the agent took from it",
    "heartbeats.SpanExport": "a position in this installation's signals",
    "calls.ExternalCall": "requests under way, and records of this installation",
    "calls.LedgerEntry": "costs of this installation",
    "calls.DailyUsage": "costs of this installation",
    "calls.TokenRatio": "measured for a model of the tenant",
    "calls.ProviderKey": "a secret of the tenant",
    "contacts.Channel": "an address with a secret",
    "contacts.SignalWebhook": "an address with a secret",
    "contacts.Hook": "an address with a secret",
    "contacts.HookDelivery": "a record of this installation",
    "contacts.OutboxMessage": "messages that are sent, or would be sent twice",
    "contacts.ChatSession": "conversations belong to the people in them; the memories of them are carried",
    "contacts.ChatMessage": "as conversations",
    "contacts.PartialReply": "as conversations",
    "knowledge.Document": "the tenant's, which all of its agents share",
    "knowledge.DocumentVersion": "the tenant's, which all of its agents share",
    "knowledge.Passage": "the tenant's, which all of its agents share",
    "knowledge.PassageTerm": "the tenant's, which all of its agents share",
    "signals.SignalBatch": "a record of this installation",
    "audit.AuditEvent": "a record of this installation, which outlives its agents",
    "audit.AuditSeal": "a seal over records of this installation",
    "audit.SealedBlock": "digests of records of this installation",
    "access.ApiToken": "a secret of the tenant",
    "access.IdempotentRequest": "requests of programs at this installation",
    "tenants.Membership": "people of the tenant",
    "tools.ToolServer": "a tenant's connection with a secret",
    "tools.Tool": "a tenant's connection; agents are allowed tools anew",
    "workflows.Workflow": "a tenant's own text, which agents only carry out",
    "workflows.WorkflowVersion": "as workflows",
    "workflows.WorkflowRun": "a record of this installation",
    "workflows.WorkflowStep": "as runs",
    "fleet.SavedSeed": "seeds are not nested",
    "fleet.SavedSeedPart": "seeds are not nested",
}
