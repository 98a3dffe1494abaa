"""Load the installation's skills from their folders into rows, at boot and when the files change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef

from apps.audit.models import AuditAction
from apps.audit.services import record_platform
from apps.knowledge.models import AgentSkill, GlobalSkill, GlobalSkillVersion, Skill
from apps.knowledge.services.skill_room import lock_skill_sizes
from apps.knowledge.services.skill_users import SkillChange, find_skill_users, update_skill_users
from apps.knowledge.services.skills import skill_tokens
from apps.tenants.scope import OPS, ops_scope
from arbor.knowledge.skill_files import (
    FolderSkills,
    UnreadableSkill,
    read_folders,
    shipped_folder,
    stamp_of,
)
from arbor.knowledge.skills import SkillFile

log = structlog.get_logger(__name__)

#: The actor of changes by files.
ACTOR = "system:skills"


@dataclass(frozen=True, kw_only=True)
class GlobalSkillChanges:
    """The result of loading the folders: the names of added, changed and withdrawn skills, and the files that could not be read."""

    added: Sequence[str] = ()
    changed: Sequence[str] = ()
    withdrawn: Sequence[str] = ()
    unchanged: int = 0
    #: The agents that keep their version of changed skills because the new one does not fit, each with these skills.
    unfitting: Sequence[str] = ()
    unreadable: Sequence[UnreadableSkill] = ()

    @property
    def has_changes(self) -> bool:
        """Return whether any skill changed."""
        return bool(self.added or self.changed or self.withdrawn)


class _LastLoad:
    """The stamp of the files at this process's last load."""

    stamp: tuple[tuple[str, int, int], ...] | None = None


def skill_folders() -> list[Path]:
    """Return the folders of global skills: Arbor's, then the installation's own, if it has one."""
    own = settings.ARBOR_SKILLS_FOLDER
    return [shipped_folder(), *([Path(own)] if own else [])]


def reload_changed_skills() -> GlobalSkillChanges | None:
    """Load the folders if their files changed since this process last loaded them; otherwise return None and run no statement."""
    stamp = stamp_of(skill_folders())
    if stamp == _LastLoad.stamp:
        return None
    changes = load_global_skills(actor=ACTOR)
    _LastLoad.stamp = stamp
    return changes


def load_global_skills(*, actor: str) -> GlobalSkillChanges:
    """Write the skills of the folders as rows; a skill whose file is gone is withdrawn, but stays for agents that use it.

    A skill whose file cannot be read stays at its last version; an agent whose models a new version does not fit keeps its version.
    The audit records and signals of all tenants commit with the rows. No transaction is open while files are read.
    """
    found = read_folders(skill_folders())
    for file in found.unreadable:
        log.warning("skill_load_failed", path=file.path, error=file.fault)
    with transaction.atomic(using=OPS):
        lock_skill_sizes()
        rows = {row.name: row for row in GlobalSkill.objects.using(OPS)}
        changed = _changes(rows, found.skills)
        users = find_skill_users(changed)
        for name, skill in found.skills.items():
            if name in changed or name not in rows:
                _write(rows.get(name) or GlobalSkill(name=name), skill, is_new=name not in rows, actor=actor)
        withdrawn = _names_without_file(rows, found)
        GlobalSkill.objects.using(OPS).filter(name__in=withdrawn).update(is_present=False)
        added = [name for name in found.skills if name not in rows]
        changes = GlobalSkillChanges(
            added=added,
            changed=list(changed),
            withdrawn=withdrawn,
            unchanged=len(found.skills) - len(added) - len(changed),
            unfitting=[f"{user.agent} ({', '.join(user.retained)})" for user in users if user.fault],
            unreadable=found.unreadable,
        )
        if changes.has_changes:
            _record(changes, actor)
        update_skill_users(users, changed=changed, actor=actor)
    return changes


def _changes(rows: Mapping[str, GlobalSkill], skills: Mapping[str, SkillFile]) -> dict[str, SkillChange]:
    """Return the skills whose version differs from their row's, or whose file is back."""
    return {
        name: SkillChange(
            before=row.digest,
            after=skill.digest,
            tokens=skill_tokens(skill),
            is_larger=skill_tokens(skill) > row.tokens,
        )
        for name, skill in skills.items()
        if (row := rows.get(name)) is not None and (row.digest != skill.digest or not row.is_present)
    }


def _names_without_file(rows: Mapping[str, GlobalSkill], found: FolderSkills) -> list[str]:
    """Return the names of skills that are not withdrawn and whose file is gone; an unreadable file is not gone."""
    unreadable = {Path(file.path).parent.name for file in found.unreadable}
    present = found.skills.keys() | unreadable
    return [name for name, row in rows.items() if row.is_present and name not in present]


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


@dataclass(frozen=True, kw_only=True)
class SkillFindings:
    """The findings of a check of the global skills: unreadable files, skills to load, withdrawn skills in use, retained versions."""

    unreadable: Sequence[UnreadableSkill]
    #: The skills whose file is new, changed or gone since the last load.
    outdated: Sequence[str]
    withdrawn_in_use: Sequence[str]
    #: The agents that keep an earlier version, each with the skill.
    retained: Sequence[str]
    loaded: int


def compare_global_skills() -> SkillFindings:
    """Compare the folders with the rows, and the withdrawn skills with the choices of all tenants' agents."""
    found = read_folders(skill_folders())
    with ops_scope():
        rows = {row.name: row for row in GlobalSkill.objects.using(OPS)}
        withdrawn = [name for name, row in rows.items() if not row.is_present]
        own = Skill.objects.filter(tenant_id=OuterRef("tenant_id"), name=OuterRef("name"))
        # A tenant's own skill goes before a global one.
        uses = AgentSkill.objects.exclude(Exists(own))
        used = uses.filter(name__in=withdrawn).order_by("name").values_list("name", flat=True)
        in_use = list(used.distinct())
        retained_rows = uses.exclude(retained_digest="").select_related("agent").order_by("name", "id")
        retained = [f"{row.agent.name} ({row.name})" for row in retained_rows]
    return SkillFindings(
        unreadable=found.unreadable,
        outdated=sorted(
            {
                *_changes(rows, found.skills),
                *(found.skills.keys() - rows),
                *_names_without_file(rows, found),
            }
        ),
        withdrawn_in_use=in_use,
        retained=retained,
        loaded=sum(row.is_present for row in rows.values()),
    )
