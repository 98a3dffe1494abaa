"""Store, find and delete the skills of a tenant; list them with the global ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.knowledge.models import AgentSkill, GlobalSkill, GlobalSkillVersion, Skill, SkillVersion
from apps.knowledge.services.skill_room import check_agents_have_room, lock_skill_sizes_shared
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from arbor.errors import AlreadyExists, Invalid, NotFound
from arbor.knowledge.skills import SkillFile, parse_skill
from arbor.models.token_estimates import estimate_tokens
from arbor.signals import SignalName, signal

#: The most agents of a skill that are shown.
USERS_SHOWN = 200
#: The most versions of a skill that are shown.
VERSIONS_SHOWN = 50
#: The most names of agents that a message lists.
_NAMED = 5


class SkillOrigin(StrEnum):
    """The origin of a skill."""

    #: The installation's folder.
    GLOBAL = "global"
    #: Written by the tenant.
    TENANT = "tenant"


@dataclass(frozen=True, kw_only=True)
class FoundSkill:
    """A skill that the current tenant can use, at its latest version."""

    name: str
    description: str
    version: str
    tags: Sequence[str]
    origin: SkillOrigin
    digest: str
    #: Estimated tokens of its instructions.
    tokens: int
    updated_at: datetime
    #: Whether an agent can still choose it: the folder has the file, or the tenant the skill.
    is_present: bool
    #: The number of the tenant's agents that use it.
    agents: int
    #: The earlier version that the agent keeps, because the latest does not fit its models; empty: it uses the latest.
    retained_digest: str = ""

    @classmethod
    def of(cls, row: Skill | GlobalSkill, *, agents: int) -> FoundSkill:
        """Return the skill of a row."""
        is_global = isinstance(row, GlobalSkill)
        return cls(
            name=row.name,
            description=row.description,
            version=row.version,
            tags=tuple(row.tags),
            origin=SkillOrigin.GLOBAL if is_global else SkillOrigin.TENANT,
            digest=row.digest,
            tokens=row.tokens,
            updated_at=row.updated_at,
            is_present=row.is_present if isinstance(row, GlobalSkill) else True,
            agents=agents,
        )


@dataclass(frozen=True, kw_only=True)
class FoundSkillVersion:
    """A version of a skill, without its file."""

    digest: str
    version: str
    created_by: str
    created_at: datetime
    is_current: bool


@dataclass(frozen=True, kw_only=True)
class LatestVersions:
    """The latest versions of a skill, at most VERSIONS_SHOWN, and the number of all."""

    shown: Sequence[FoundSkillVersion]
    total: int


def list_skills() -> list[FoundSkill]:
    """List the skills of this tenant by name, with the number of agents that use each; its own skills hide global ones of the same name.

    A withdrawn global skill is listed only while an agent uses it.
    """
    users = _users_by_skill(AgentSkill.objects.all())
    rows: dict[str, Skill | GlobalSkill] = {row.name: row for row in GlobalSkill.objects.all()}
    rows |= {row.name: row for row in Skill.objects.all()}
    return [
        FoundSkill.of(row, agents=users.get(name, 0))
        for name, row in sorted(rows.items())
        if users.get(name) or not isinstance(row, GlobalSkill) or row.is_present
    ]


def find_skills(names: Sequence[str]) -> list[FoundSkill]:
    """Find skills in the order of their names, each the tenant's own or else the global one, with the number of its agents.

    Raises NotFound for unknown names.
    """
    rows: dict[str, Skill | GlobalSkill] = {
        row.name: row for row in GlobalSkill.objects.filter(name__in=names)
    }
    rows |= {row.name: row for row in Skill.objects.filter(name__in=names)}
    if unknown := [name for name in names if name not in rows]:
        known = ", ".join(skill.name for skill in list_skills()) or "none yet"
        raise NotFound(f"there is no skill {', '.join(map(repr, unknown))}; there is: {known}")
    users = _users_by_skill(AgentSkill.objects.filter(name__in=names))
    return [FoundSkill.of(rows[name], agents=users.get(name, 0)) for name in names]


def _users_by_skill(rows: QuerySet[AgentSkill]) -> dict[str, int]:
    counted = rows.order_by().values("name").annotate(agents=Count("id"))
    return dict(counted.values_list("name", "agents"))


def find_skill(name: str) -> FoundSkill:
    """Find a skill by name, with the number of its agents. Raises NotFound."""
    (skill,) = find_skills([name.strip()])
    return skill


def latest_versions(skill: FoundSkill) -> LatestVersions:
    """Return the latest versions of a skill, the latest first."""
    model = GlobalSkillVersion if skill.origin is SkillOrigin.GLOBAL else SkillVersion
    rows = model.objects.filter(name=skill.name).order_by("-created_at", "-digest")
    shown = [
        FoundSkillVersion(
            digest=row.digest,
            version=row.version,
            created_by=row.created_by,
            created_at=row.created_at,
            is_current=row.digest == skill.digest,
        )
        for row in rows.defer("text")[:VERSIONS_SHOWN]
    ]
    return LatestVersions(shown=shown, total=rows.count() if len(shown) == VERSIONS_SHOWN else len(shown))


def text_of(skill: FoundSkill) -> str:
    """Return the file of a skill's latest version."""
    model = GlobalSkillVersion if skill.origin is SkillOrigin.GLOBAL else SkillVersion
    text: str = model.objects.values_list("text", flat=True).get(digest=skill.digest)
    return text


def agents_with(name: str) -> list[Agent]:
    """Return the agents of the tenant that use a skill, by name."""
    return list(Agent.objects.filter(active_skills__name=name).order_by("name"))


def first_agents_with(name: str) -> list[Agent]:
    """Return the first agents of the tenant that use a skill, by name, at most USERS_SHOWN, to show them."""
    agents = Agent.objects.filter(active_skills__name=name).only("tenant_id", "name").order_by("name")
    return list(agents[:USERS_SHOWN])


def _lock_agents_with(name: str) -> None:
    """Lock the sizes of global skills against changes, then the agents that use a skill.

    Rows of skills are locked after those of agents, as in `choose_skills`. With the agents locked, none of their other skills changes
    meanwhile.
    """
    lock_skill_sizes_shared()
    list(
        Agent.objects.select_for_update(no_key=True, of=("self",))
        .filter(active_skills__name=name)
        .order_by("id")
    )


def skill_tokens(skill: SkillFile) -> int:
    """Return the estimated tokens of a skill's instructions."""
    return estimate_tokens(skill.body)


@transaction.atomic
def add_skill(*, text: str, actor: str) -> FoundSkill:
    """Add a skill of the current tenant. Raises SkillInvalid, AlreadyExists for a name in use, LimitReached.

    The new skill replaces a global one of the same name, also for agents that use the global one already.
    """
    skill = parse_skill(text)
    if Skill.objects.filter(name=skill.name).exists():
        raise _exists(skill.name)
    _lock_agents_with(skill.name)
    replaced = GlobalSkill.objects.filter(name=skill.name).first()
    row = Skill(tenant_id=current_tenant(), name=skill.name)
    _fill(row, skill)
    # An agent may use an earlier, smaller version of the global skill.
    retained = AgentSkill.objects.filter(name=skill.name).exclude(retained_digest="").exists()
    _check_room(row, before=replaced.tokens if replaced and not retained else 0)
    _store_version(skill, actor=actor)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise _exists(skill.name) from error
    _record(row, before=replaced.digest if replaced else "", actor=actor, verb="added")
    return find_skill(row.name)


@transaction.atomic
def replace_skill(*, text: str, actor: str) -> FoundSkill:
    """Store a new version of the tenant's skill that the text names; the agents with the skill use it from their next prompt on.

    Raises SkillInvalid, NotFound when the tenant has no skill of that name, and LimitReached when it does not fit the window of an
    agent that uses it.
    """
    skill = parse_skill(text)
    _lock_agents_with(skill.name)
    row: Skill | None = Skill.objects.select_for_update().filter(name=skill.name).first()
    if row is None:
        raise NotFound(f"this tenant has no skill {skill.name!r} of its own; add it")
    if row.digest == skill.digest:
        return find_skill(row.name)
    before, tokens = row.digest, row.tokens
    _fill(row, skill)
    _check_room(row, before=tokens)
    _store_version(skill, actor=actor)
    row.save()
    _record(row, before=before, actor=actor, verb="changed")
    return find_skill(row.name)


@transaction.atomic
def delete_skill(*, name: str, actor: str) -> None:
    """Delete a skill of the current tenant; its versions stay, because recorded heartbeats name them.

    Raises NotFound, Invalid while agents use the skill and there is no global one of the same name, and LimitReached when the
    global one does not fit the window of an agent that uses the skill.
    """
    _lock_agents_with(name.strip())
    row: Skill | None = Skill.objects.select_for_update().filter(name=name.strip()).first()
    if row is None:
        raise NotFound(f"this tenant has no skill {name!r} of its own")
    replacement = GlobalSkill.objects.filter(name=row.name).first()
    users = agents_with(row.name)
    if users and replacement is None:
        more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
        raise Invalid(
            f"the skill {row.name} is in use by {', '.join(agent.name for agent in users[:_NAMED])}{more}: choose other skills"
            " for them first"
        )
    if replacement is not None and replacement.tokens > row.tokens:
        check_agents_have_room(users, changed={row.name: replacement.tokens})
    before = row.digest
    row.delete()
    # The latest global version fits, so agents need no earlier version that they kept before the tenant had its own skill.
    AgentSkill.objects.filter(name=row.name).exclude(retained_digest="").update(retained_digest="")
    record(
        action=AuditAction.SKILL_DELETED,
        actor=actor,
        message=f"deleted the skill {row.name}",
        detail={"skill": row.name, "before": before},
    )
    emit_changed(users, name=row.name, digest=replacement.digest if replacement else "", actor=actor)


def _check_room(row: Skill, *, before: int) -> None:
    """Check that a version of more tokens than before fits the windows of the agents that use the skill. Raises LimitReached."""
    if row.tokens > before:
        check_agents_have_room(agents_with(row.name), changed={row.name: row.tokens})


def _store_version(skill: SkillFile, *, actor: str) -> None:
    SkillVersion.objects.bulk_create(
        [
            SkillVersion(
                tenant_id=current_tenant(),
                digest=skill.digest,
                name=skill.name,
                version=skill.version,
                text=skill.text,
                created_by=actor,
            )
        ],
        # An earlier version may come back.
        ignore_conflicts=True,
    )


def _fill(row: Skill, skill: SkillFile) -> None:
    row.description, row.version, row.tags = skill.description, skill.version, list(skill.tags)
    row.digest, row.tokens = skill.digest, skill_tokens(skill)


def _record(row: Skill, *, before: str, actor: str, verb: str) -> None:
    record(
        action=AuditAction.SKILL_CHANGED,
        actor=actor,
        message=f"{verb} the skill {row.name} {row.version}".rstrip(),
        detail={"skill": row.name, "before": before, "after": row.digest, "tokens": row.tokens},
    )
    emit_changed(agents_with(row.name), name=row.name, digest=row.digest, actor=actor)


def emit_changed(agents: Sequence[Agent], *, name: str, digest: str, actor: str) -> None:
    """Emit a signal for each of the agents that use another version of a skill from their next prompts on."""
    emit(
        *(
            signal(SignalName.AGENT_SKILL_CHANGED, agent.id, skill=name, digest=digest, actor=actor)
            for agent in agents
        )
    )


def _exists(name: str) -> AlreadyExists:
    return AlreadyExists(f"this tenant has a skill {name!r} already; replace it, or choose another name")
