"""The commands about the templates of agents."""

from __future__ import annotations

import click

from config.cli.kit.declarations import argument, command, group, option, tenant_command

TEMPLATE = group(
    "template",
    "Manage the templates that agents are created from.",
    tenant_command(
        "list",
        "List the templates: a tenant's own first, then the built-in ones.",
        run="agents.templates:list_all",
        examples=("arbor agent template list --tenant acme",),
    ),
    tenant_command(
        "show",
        "Show a template as it was written.",
        argument("name"),
        run="agents.templates:show_one",
        examples=("arbor agent template show Scout",),
    ),
    command(
        "validate",
        "Check a template file, and list every fault with its line.",
        argument("file", type=click.File(encoding="utf-8")),
        run="agents.templates:validate",
        details="Exit code 1 when there is a fault.",
        examples=("arbor agent template validate gardener.md",),
    ),
    tenant_command(
        "add",
        "Add a tenant's own template from a file, or replace it; existing agents stay as they are.",
        argument("file", type=click.File(encoding="utf-8")),
        option("--replace", is_flag=True, help="Replace the tenant's template of that name."),
        run="agents.templates:add",
        examples=("arbor agent template add gardener.md --tenant acme",),
    ),
)
