"""Templates and the agents created from them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.tenants.fields import PackedJSON, TenantOneToOne, choices_of
from apps.tenants.models import TenantModel, TenantRow
from arbor.agents.energy import ENERGY_CEILING
from arbor.agents.lifecycle import AgentStatus
from arbor.ids import uuid7
from arbor.quotations import counted


class AbstractTemplate(models.Model):
    """An archetype that agents are created from."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=100)
    version = models.CharField(max_length=40)
    description = models.TextField(blank=True)
    #: The template's Markdown, and the same as `arbor.agents.template.TemplateSpec` in JSON.
    source_text = models.TextField()
    spec = models.JSONField()
    content_hash = models.CharField(max_length=64)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class BuiltinTemplate(AbstractTemplate):
    """A template that comes with Arbor, the same for every tenant."""

    app_privileges: ClassVar[str] = "SELECT"
    ops_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE, DELETE"

    class Meta(AbstractTemplate.Meta):
        verbose_name = "built-in template"
        constraints = [models.UniqueConstraint(fields=["name"], name="agents_builtintemplate_name")]


class Template(AbstractTemplate, TenantModel):
    """A tenant's own template; it takes precedence over a built-in one of the same name."""

    class Meta(AbstractTemplate.Meta, TenantModel.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="agents_template_name")]


class Agent(TenantRow):
    """An agent's constant data; the changing data is in `AgentState` and the schedule."""

    #: `agent_` and the SHA-256 of its first public key.
    public_id = models.CharField(max_length=70, editable=False)
    name = models.CharField(max_length=100)
    status = models.CharField(max_length=16, choices=choices_of(AgentStatus), default=AgentStatus.CREATED)
    template_name = models.CharField(max_length=100)
    template_version = models.CharField(max_length=40)
    trust_tier = models.CharField(max_length=16)
    #: Character as read from the template (`arbor.agents.character.Character` as JSON), and role and traits.
    character = models.JSONField()
    genome = models.JSONField(null=True)
    #: DOT text of its own pipeline; empty: the default graph.
    pipeline = models.TextField(blank=True)
    #: `provider/model`; empty: the default of its tenant, else of the installation.
    model = models.CharField(max_length=200, blank=True)
    #: Whether agents elsewhere may read its card without a token, and give it tasks with one.
    published = models.BooleanField(default=False, db_default=False)
    #: The description on its card; empty: its role.
    public_description = models.CharField(max_length=500, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="agents_agent_name"),
            models.UniqueConstraint(fields=["tenant", "public_id"], name="agents_agent_public_id"),
        ]

    def __str__(self) -> str:
        return self.name


class AgentState(TenantModel):
    """An agent's state: the data that each heartbeat changes, in a narrow row of its own."""

    agent = TenantOneToOne(Agent, primary_key=True, related_name="state")
    energy = models.FloatField(default=10.0)
    #: Heartbeats that ran to a decision.
    heartbeats = models.BigIntegerField(default=0)
    #: Heartbeats in a row whose reply could not be used.
    nops = models.IntegerField(default=0)
    #: `arbor.heartbeat.working_memory.WorkingMemory` as JSON, at most 64 KB.
    working_memory = PackedJSON(default=dict)
    #: `arbor.selves.drives.Drives` as JSON: level and last satisfaction of each drive; empty: the baselines.
    drives = PackedJSON(default=dict)
    #: `arbor.selves.emotions.Mood` as JSON: valence, arousal and their time; empty: the baseline.
    mood = PackedJSON(default=dict)
    #: {action: [attempts, successes]}
    learned = PackedJSON(default=dict)
    #: Actions earned by rest for the next heartbeat, under a budget of actions.
    bonus_actions = models.PositiveSmallIntegerField(default=0, db_default=0)
    #: Remaining ticks of the current cycle, under a budget of ticks.
    ticks_left = models.PositiveIntegerField(default=0, db_default=0)
    #: Idle heartbeats in a row, and heartbeats since something new last happened.
    idle_heartbeats = models.PositiveIntegerField(default=0, db_default=0)
    stale_heartbeats = models.PositiveIntegerField(default=0, db_default=0)
    #: `arbor.heartbeat.situation.Notice` as JSON.
    notices = models.JSONField(default=list, db_default=[])
    last_heartbeat_at = models.DateTimeField(null=True)
    last_user_contact_at = models.DateTimeField(null=True)
    #: Time of the agent's last message to its users on its own initiative.
    last_reach_out_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(fields=["tenant"], name="agents_state_noticed", condition=~models.Q(notices=[])),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(energy__gte=0) & models.Q(energy__lte=ENERGY_CEILING),
                name="agents_state_energy",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.energy:g} energy after {counted(self.heartbeats, 'heartbeat')}"


class AgentPolicy(TenantModel):
    """An agent's policy: action budget, active hours, models by tier, daily limits. Without a row: the defaults."""

    agent = TenantOneToOne(Agent, primary_key=True, related_name="policy")
    #: An `arbor.heartbeat.budgets.BudgetKind`.
    budget = models.CharField(max_length=8, default="energy")
    #: Ticks per cycle under a budget of ticks, actions per heartbeat under a budget of actions. Empty: the default.
    allowance = models.PositiveIntegerField(null=True, blank=True)
    #: `arbor.agents.energy.EnergyPolicy` as JSON; empty: as the tenant's policy has it, or the defaults.
    energy = models.JSONField(default=dict, db_default={}, blank=True)
    #: {tier: [`provider/model`, …]} in order of preference; a missing tier means the agent's model.
    tier_models = models.JSONField(default=dict, blank=True)
    #: Hours with heartbeats, in the policy's time zone; empty: always. 22:00 to 06:00 is valid and spans midnight.
    active_from = models.TimeField(null=True, blank=True)
    active_until = models.TimeField(null=True, blank=True)
    time_zone = models.CharField(max_length=60, default="UTC")
    #: Whether the interval grows while the agent is idle.
    adaptive = models.BooleanField(default=True)
    #: Daily limits (UTC); empty: no limit.
    daily_heartbeats = models.PositiveIntegerField(null=True, blank=True)
    daily_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    daily_usd = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    #: Further round trips within one heartbeat; empty: the installation's default.
    follow_ups = models.PositiveSmallIntegerField(null=True, blank=True)
    #: Inner voices that a heartbeat asks before a hard decision, 2 to 4, each by a model call; 0: none.
    voices = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta(TenantModel.Meta):
        verbose_name = "policy"
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        agent = self._state.fields_cache.get("agent")
        return f"policy of {agent.name if agent else self.agent_id}"
