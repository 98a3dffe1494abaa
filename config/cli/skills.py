"""Manage skills, and the active skills of agents."""

from __future__ import annotations

from typing import TextIO

from rich.console import Group
from rich.markup import escape
from rich.syntax import Syntax

from apps.knowledge.services.active_skills import active_skills, choose_skills
from apps.knowledge.services.global_skills import load_global_skills
from apps.knowledge.services.skills import (
    FoundSkill,
    add_skill,
    delete_skill,
    find_skill,
    first_agents_with,
    latest_versions,
    list_skills,
    replace_skill,
    text_of,
)
from apps.tenants.scope import tenant_transaction
from arbor.knowledge.skills import MAX_SKILLS, parse_skill
from config.cli.kit.columns import OutputColumn, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.tenancy import ChosenAgent, actor, choose_tenant, in_agent_transaction
from config.cli.kit.text_files import read_text

SKILL_COLUMNS = (
    OutputColumn("name", "skill"),
    OutputColumn("version", "version"),
    OutputColumn("origin", "origin", value=lambda skill: skill.origin.value),
    OutputColumn("tokens", "tokens"),
    OutputColumn("agents", "agents"),
    OutputColumn("tags", value=lambda skill: list(skill.tags)),
    OutputColumn("is_present", value=lambda skill: skill.is_present),
    OutputColumn("digest"),
    OutputColumn("retained_digest"),
    OutputColumn("description", "about", cell=lambda text: text[:80]),
)
_EMPTY = "No skill yet. Load the global ones: [bold]arbor skill load[/bold]"


def list_all(tenant_slug: str | None) -> Output:
    """List the skills that a tenant's agents can use."""
    with tenant_transaction(choose_tenant(tenant_slug).id):
        skills = list_skills()
    return listing("skills", skills, SKILL_COLUMNS, empty=_EMPTY)


def show(name: str, tenant_slug: str | None) -> Output:
    """Show a skill as it was written, with its versions and the agents that use it."""
    with tenant_transaction(choose_tenant(tenant_slug).id):
        skill = find_skill(name)
        text, versions = text_of(skill), latest_versions(skill)
        agents = [agent.name for agent in first_agents_with(skill.name)]
    head = f"[bold]{skill.name}[/bold] {escape(skill.version)} ({skill.origin}), {skill.tokens:,} tokens"
    more = f" and {skill.agents - len(agents):,} more" if skill.agents > len(agents) else ""
    users = f"Used by {escape(', '.join(agents))}{more}." if skill.agents else "No agent uses it."
    lines = [
        f"{version.created_at:%Y-%m-%d %H:%M} {escape(version.version)} {version.digest[:12]} by"
        f" {escape(version.created_by)}{' (current)' if version.is_current else ''}"
        for version in versions.shown
    ]
    value = {
        **row_to_dict(skill, SKILL_COLUMNS),
        "agents": agents,
        "agents_total": skill.agents,
        "text": text,
        "versions": [
            {
                "digest": version.digest,
                "version": version.version,
                "created_by": version.created_by,
                "created_at": version.created_at.isoformat(),
                "is_current": version.is_current,
            }
            for version in versions.shown
        ],
        "versions_total": versions.total,
    }
    body = Syntax(text, "markdown", word_wrap=True, background_color="default")
    part = f"the latest {len(lines):,} of " if versions.total > len(lines) else ""
    return Output(value, text=Group(head, body, users, f"Versions: {part}{versions.total:,}", *lines))


def add(file: TextIO, replace: bool, tenant_slug: str | None) -> Output:
    """Add a tenant's own skill from a file, or a new version of it."""
    text = read_text(file)
    with tenant_transaction(choose_tenant(tenant_slug).id):
        skill = (replace_skill if replace else add_skill)(text=text, actor=actor())
    verb = "Changed" if replace else "Added"
    return Output(
        row_to_dict(skill, SKILL_COLUMNS),
        text=f"{verb} the skill [bold]{skill.name}[/bold] {escape(skill.version)}, {skill.tokens:,} tokens. Next:"
        f" [bold]arbor agent skill set AGENT {skill.name}[/bold]",
    )


def check(file: TextIO) -> Output:
    """Check a SKILL.md file."""
    skill = parse_skill(read_text(file))
    return Output(
        {"valid": True, "name": skill.name, "version": skill.version},
        text=f"{skill.name} {escape(skill.version)} is valid.",
    )


def delete(name: str, tenant_slug: str | None) -> Output:
    """Delete a skill of the tenant that no agent uses."""
    with tenant_transaction(choose_tenant(tenant_slug).id):
        delete_skill(name=name, actor=actor())
    return Output({"deleted": name}, text=f"The skill [bold]{escape(name)}[/bold] is deleted.")


def load() -> Output:
    """Load the global skills from their folders."""
    changes = load_global_skills(actor=actor())
    parts = {"added": changes.added, "changed": changes.changed, "withdrawn": changes.withdrawn}
    lines = [f"{word}: {', '.join(names)}" for word, names in parts.items() if names]
    lines.append(f"unchanged: {changes.unchanged}")
    if changes.unfitting:
        lines.append(
            f"too large for the models of agents, which keep their version: {escape(', '.join(changes.unfitting))}"
        )
    lines += [f"not loaded: {escape(file.path)}: {escape(file.fault)}" for file in changes.unreadable]
    value = {word: list(names) for word, names in parts.items()} | {
        "unchanged": changes.unchanged,
        "unfitting": list(changes.unfitting),
        "unreadable": [{"path": file.path, "fault": file.fault} for file in changes.unreadable],
    }
    return Output(value, text="\n".join(lines))


@in_agent_transaction
def list_active(agent: ChosenAgent) -> Output:
    """List the active skills of an agent, in the order of its prompts."""
    return _active_output(agent, active_skills(agent.id))


@in_agent_transaction
def set_active(agent: ChosenAgent, *, names: tuple[str, ...]) -> Output:
    """Set the active skills of an agent."""
    return _active_output(agent, choose_skills(agent_id=agent.id, names=names, actor=actor()))


def _active_output(agent: ChosenAgent, skills: list[FoundSkill]) -> Output:
    return listing(
        "skills",
        skills,
        SKILL_COLUMNS,
        about={"agent": agent.name},
        empty=f"{escape(agent.name)} has no skills, and can have {MAX_SKILLS}:"
        " [bold]arbor agent skill set AGENT SKILL…[/bold]",
    )
