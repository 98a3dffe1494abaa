"""Load the installation's skills from their folders into rows, at boot and when the files change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections, transaction

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record, record_platform
from apps.knowledge.models import AgentSkill, GlobalSkill, GlobalSkillVersion, Skill
from apps.knowledge.services.skills import skill_tokens
from apps.signals.services.emission import emit
from apps.tenants.scope import OPS, ops_scope, tenant_transaction
from arbor.knowledge.skill_files import UnreadableSkill, read_folders, shipped_folder, stamp_of
from arbor.knowledge.skills import SkillFile
from arbor.signals import SignalName, signal

log = structlog.get_logger(__name__)

#: The actor of changes by files.
ACTOR = "system:skills"


@dataclass(frozen=True, kw_only=True)
class GlobalSkillChanges:
    """The names of skills that loading added, changed and withdrew, and the files that could not be read."""

    added: Sequence[str] = ()
    changed: Sequence[str] = ()
    withdrawn: Sequence[str] = ()
    unchanged: int = 0
    unreadable: Sequence[UnreadableSkill] = ()

    @property
    def are_any(self) -> bool:
        """Return whether any skill changed."""
        return bool(self.added or self.changed or self.withdrawn)


class _LastLoad:
    """The stamp of the files that this process loaded last."""

    stamp: tuple[tuple[str, int, int], ...] | None = None


def skill_folders() -> list[Path]:
    """Return the folders of global skills: Arbor's, then the installation's own, if it has one."""
    own = settings.ARBOR_SKILLS_FOLDER
    return [shipped_folder(), *([Path(own)] if own else [])]


def reload_changed_skills() -> GlobalSkillChanges | None:
    """Load the folders if their files changed since this process last did; None: they did not. Without a statement then."""
    stamp = stamp_of(skill_folders())
    if stamp == _LastLoad.stamp:
        return None
    changes = load_global_skills(actor=ACTOR)
    _LastLoad.stamp = stamp
    return changes


def load_global_skills(*, actor: str) -> GlobalSkillChanges:
    """Write the skills of the folders as rows; a skill whose file is gone is withdrawn, but stays for agents that use it.

    A file that cannot be read leaves the skill at its last version. No transaction is open while files are read.
    """
    folder = read_folders(skill_folders())
    for file in folder.unreadable:
        log.warning("skill_load_failed", path=file.path, error=file.fault)
    unreadable = {Path(file.path).parent.name for file in folder.unreadable}
    added, changed, withdrawn = [], [], []
    with transaction.atomic(using=OPS):
        _wait_for_other_loads()
        rows = {row.name: row for row in GlobalSkill.objects.using(OPS)}
        for name, skill in folder.skills.items():
            row = rows.get(name)
            if row is None:
                added.append(name)
            elif row.digest != skill.digest or not row.is_present:
                changed.append(name)
            else:
                continue
            _write(row or GlobalSkill(name=name), skill, is_new=row is None, actor=actor)
        for name, row in rows.items():
            if name not in folder.skills and name not in unreadable and row.is_present:
                row.is_present = False
                row.save(using=OPS, update_fields=["is_present"])
                withdrawn.append(name)
        changes = GlobalSkillChanges(
            added=added,
            changed=changed,
            withdrawn=withdrawn,
            unchanged=len(folder.skills) - len(added) - len(changed),
            unreadable=folder.unreadable,
        )
        if changes.are_any:
            _record(changes, actor)
    _notify_agents({name: folder.skills[name].digest for name in changed}, actor)
    return changes


def _wait_for_other_loads() -> None:
    """Let processes that load at the same time do so one after the other."""
    with connections[OPS].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('arbor.skills'))")


def _write(row: GlobalSkill, skill: SkillFile, *, is_new: bool, actor: str) -> None:
    GlobalSkillVersion.objects.using(OPS).bulk_create(
        [
            GlobalSkillVersion(
                digest=skill.digest,
                name=skill.name,
                version=skill.version,
                text=skill.text,
                created_by=actor,
            )
        ],
        ignore_conflicts=True,
    )
    row.description, row.version, row.tags = skill.description, skill.version, list(skill.tags)
    row.digest, row.tokens, row.is_present = skill.digest, skill_tokens(skill), True
    row.save(using=OPS, force_insert=is_new)


def _record(changes: GlobalSkillChanges, actor: str) -> None:
    parts = {"added": changes.added, "changed": changes.changed, "withdrew": changes.withdrawn}
    message = "; ".join(f"{verb} {', '.join(names)}" for verb, names in parts.items() if names)
    record_platform(
        action=AuditAction.SKILL_CHANGED,
        actor=actor,
        message=f"global skills: {message}",
        detail={verb: list(names) for verb, names in parts.items() if names},
    )


def _notify_agents(digests: dict[str, str], actor: str) -> None:
    """Record the change of skills in each tenant whose agents use them, and emit a signal for each of these agents."""
    users: dict[UUID, list[tuple[UUID, str]]] = defaultdict(list)
    if digests:
        with ops_scope():
            for tenant_id, agent_id, name in AgentSkill.objects.filter(name__in=digests).values_list(
                "tenant_id", "agent_id", "name"
            ):
                users[tenant_id].append((agent_id, name))
    for tenant_id, uses in users.items():
        with tenant_transaction(tenant_id):
            own = set(Skill.objects.filter(name__in=digests).values_list("name", flat=True))
            existing = set(
                Agent.objects.filter(id__in={agent_id for agent_id, _ in uses}).values_list("id", flat=True)
            )
            current = [
                (agent_id, name) for agent_id, name in uses if name not in own and agent_id in existing
            ]
            for name in sorted({name for _, name in current}):
                record(
                    action=AuditAction.SKILL_CHANGED,
                    actor=actor,
                    message=f"the global skill {name} changed",
                    detail={"skill": name, "after": digests[name]},
                )
            emit(
                *(
                    signal(
                        SignalName.AGENT_SKILL_CHANGED,
                        agent_id,
                        skill=name,
                        digest=digests[name],
                        actor=actor,
                    )
                    for agent_id, name in current
                )
            )


@dataclass(frozen=True, kw_only=True)
class SkillFindings:
    """The findings of a check of the global skills: unreadable files, skills to load, and withdrawn ones that agents use."""

    unreadable: Sequence[UnreadableSkill]
    outdated: Sequence[str]
    withdrawn_in_use: Sequence[str]
    loaded: int


def compare_global_skills() -> SkillFindings:
    """Compare the folders with the rows, and the withdrawn skills with the choices of all tenants' agents."""
    folder = read_folders(skill_folders())
    with ops_scope():
        rows = {row.name: row for row in GlobalSkill.objects.using(OPS)}
        withdrawn = [name for name, row in rows.items() if not row.is_present]
        used = AgentSkill.objects.filter(name__in=withdrawn).order_by("name").values_list("name", flat=True)
        in_use = list(used.distinct())
    return SkillFindings(
        unreadable=folder.unreadable,
        outdated=sorted(
            name
            for name, skill in folder.skills.items()
            if name not in rows or rows[name].digest != skill.digest or not rows[name].is_present
        ),
        withdrawn_in_use=in_use,
        loaded=sum(row.is_present for row in rows.values()),
    )
