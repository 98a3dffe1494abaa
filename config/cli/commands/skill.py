"""The commands about skills."""

from __future__ import annotations

import click

from config.cli.kit.declarations import argument, command, group, option, tenant_command

_FILE = argument("file", type=click.File("r", encoding="utf-8"))

_skill = group(
    "skill",
    "Manage skills: SKILL.md files that say how agents do their work.",
    tenant_command(
        "list",
        "List the skills that agents of a tenant can use: its own, and the global ones.",
        run="skills:list_all",
        examples=("arbor skill list",),
    ),
    tenant_command(
        "show",
        "Show a skill as it was written, with its versions and the agents that use it.",
        argument("name"),
        run="skills:show",
        examples=("arbor skill show decision-memo",),
    ),
    tenant_command(
        "add",
        "Add a skill of the tenant from a SKILL.md file, or a new version of it.",
        _FILE,
        option("--replace", is_flag=True, help="Store a new version of the skill of that name."),
        run="skills:add",
        examples=("arbor skill add SKILL.md", "arbor skill add SKILL.md --replace"),
    ),
    command(
        "check",
        "Check a SKILL.md file, and list every fault with its line.",
        _FILE,
        run="skills:check",
        examples=("arbor skill check SKILL.md",),
    ),
    tenant_command(
        "delete",
        "Delete a skill of the tenant that no agent uses.",
        argument("name"),
        run="skills:delete",
        examples=("arbor skill delete invoice-review",),
    ),
    command(
        "load",
        "Load the global skills from their folders now. The installation does it at its start and when files change.",
        run="skills:load",
        examples=("arbor skill load",),
    ),
    details="Agents follow at most five skills, whole; a skill never grants an action. docs/how-to/skills.md.",
)

COMMANDS = (_skill,)
