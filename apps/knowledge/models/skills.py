"""Skills as rows: the installation's and a tenant's own, their unchanging versions, and the choices of agents."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel, TenantRow
from arbor.ids import uuid7
from arbor.knowledge.skills import MAX_DESCRIPTION, MAX_NAME, MAX_SKILLS, MAX_VERSION


class AbstractSkill(models.Model):
    """A skill at its latest version."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=MAX_NAME)
    description = models.CharField(max_length=MAX_DESCRIPTION)
    version = models.CharField(max_length=MAX_VERSION, blank=True)
    tags = models.JSONField(default=list)
    #: The digest of its latest version's text, and the estimated tokens of its instructions.
    digest = models.CharField(max_length=64)
    tokens = models.PositiveIntegerField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class GlobalSkill(AbstractSkill):
    """A skill of the installation's folder, the same for every tenant."""

    app_privileges: ClassVar[str] = "SELECT"
    ops_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE"

    #: Whether the folder still has the file. If not, the agents that use the skill keep it, and no other can choose it.
    is_present = models.BooleanField(default=True)

    class Meta(AbstractSkill.Meta):
        verbose_name = "global skill"
        constraints = [models.UniqueConstraint(fields=["name"], name="knowledge_globalskill_name")]


class Skill(AbstractSkill, TenantModel):
    """A tenant's own skill; it takes precedence over a global one of the same name."""

    class Meta(AbstractSkill.Meta, TenantModel.Meta):
        verbose_name = "own skill"
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="knowledge_skill_name")]


class AbstractSkillVersion(models.Model):
    """A version of a skill: the whole file, under its digest. Never changed, because recorded heartbeats name versions."""

    digest = models.CharField(primary_key=True, max_length=64, editable=False)
    name = models.CharField(max_length=MAX_NAME)
    version = models.CharField(max_length=MAX_VERSION, blank=True)
    text = models.TextField()
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True
        ordering = ["created_at", "digest"]

    def __str__(self) -> str:
        return f"{self.name} {self.version or self.digest[:12]}"


class GlobalSkillVersion(AbstractSkillVersion):
    """A version of a global skill."""

    app_privileges: ClassVar[str] = "SELECT"
    ops_privileges: ClassVar[str] = "SELECT, INSERT"

    class Meta(AbstractSkillVersion.Meta):
        verbose_name = "version of a global skill"
        verbose_name_plural = "versions of global skills"
        indexes = [models.Index(fields=["name", "created_at"], name="knowledge_globalver_by_name")]


class SkillVersion(AbstractSkillVersion, TenantModel):
    """A version of a tenant's skill."""

    app_privileges: ClassVar[str] = "SELECT, INSERT"

    class Meta(AbstractSkillVersion.Meta, TenantModel.Meta):
        verbose_name = "version of a skill"
        verbose_name_plural = "versions of skills"
        indexes = [models.Index(fields=["tenant", "name", "created_at"], name="knowledge_skillver_by_name")]


class AgentSkill(TenantRow):
    """An active skill of an agent, by name: the tenant's own of that name, or else the global one."""

    ops_privileges: ClassVar[str] = "SELECT, UPDATE (retained_digest)"

    agent = TenantForeignKey(Agent, related_name="active_skills")
    #: The place of the skill in the prompt, from 1.
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=MAX_NAME)
    #: The version of the global skill that the agent keeps, because a later one does not fit its models; empty: the latest.
    retained_digest = models.CharField(max_length=64, default="", db_default="", blank=True)

    class Meta(TenantModel.Meta):
        verbose_name = "active skill"
        ordering = ["position"]
        indexes = [models.Index(fields=["tenant", "name"], name="knowledge_agentskill_by_name")]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "position"], name="knowledge_agentskill_position"
            ),
            models.UniqueConstraint(fields=["tenant", "agent", "name"], name="knowledge_agentskill_name"),
            # With one row for a position, at most five rows for an agent.
            models.CheckConstraint(
                condition=models.Q(position__gte=1) & models.Q(position__lte=MAX_SKILLS),
                name="knowledge_agentskill_at_most_five",
            ),
        ]

    def __str__(self) -> str:
        return self.name
