"""`arbor template`: the archetypes agents are made from."""

from __future__ import annotations

from typing import Any, TextIO

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.syntax import Syntax

from apps.agents.services.templates import (
    FoundTemplate,
    add_template,
    find_template,
    list_builtin_templates,
    list_templates,
    read_template,
    update_template,
)
from apps.tenants.scope import tenant_transaction
from config.cli.output import json_option, note, show, table
from config.cli.tenancy import actor, choose_tenant, only_tenant, tenant_option


@click.group()
def template() -> None:
    """Templates: archetypes that agents are created from."""


@template.command("list")
@tenant_option
@json_option
def list_them(tenant_slug: str | None, as_json: bool) -> None:
    """List the templates: a tenant's own, which go before built-in ones of the same name, and the built-in.

    \b
    Example: arbor template list --tenant acme
    """
    if tenant_slug is None and only_tenant() is None:
        note("the built-in templates; --tenant SLUG adds a tenant's own")
        found = list_builtin_templates()
    else:
        with tenant_transaction(choose_tenant(tenant_slug).id):
            found = list_templates()
    rows = [_line(each) for each in found]
    people: RenderableType | str = table(
        ("template", "version", "origin", "trust", "goals", "actions", "about"),
        ((*_cells(each), _first_sentence(each.spec.description)) for each in found),
    )
    empty = "No template yet. Write the built-in ones: [bold]arbor manage seed_templates[/bold]"
    show({"templates": rows}, as_json=as_json, people=people if rows else empty)


@template.command("show")
@click.argument("name")
@tenant_option
@json_option
def show_one(name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Show a template as it was written.

    \b
    Example: arbor template show Scout
    """
    found = _find(name, tenant_slug)
    head = f"[bold]{found.name}[/bold] {escape(found.version)} ({found.origin})"
    show(
        {
            **_line(found),
            "spec": found.spec.model_dump(mode="json"),
            "source_text": found.source_text,
        },
        as_json=as_json,
        people=Group(head, Syntax(found.source_text, "markdown", word_wrap=True, background_color="default")),
    )


@template.command("validate")
@click.argument("file", type=click.File(encoding="utf-8"))
@json_option
def validate(file: TextIO, as_json: bool) -> None:
    """Check a template file; lists every fault with its line. Exit code 1 when there is one.

    \b
    Example: arbor template validate gardener.md
    """
    spec = read_template(file.read())
    show(
        {"valid": True, "name": spec.name, "version": spec.version},
        as_json=as_json,
        people=f"{spec.name} {escape(spec.version)} is valid: {len(spec.initial_goals)} goals,"
        f" actions {', '.join(spec.actions)}.",
    )


@template.command("add")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--replace", is_flag=True, help="Replace the tenant's template of that name.")
@tenant_option
@json_option
def add(file: TextIO, replace: bool, tenant_slug: str | None, as_json: bool) -> None:
    """Add a tenant's own template from a file, or replace it; agents made before stay as they are.

    \b
    Example: arbor template add gardener.md --tenant acme
    """
    chosen = choose_tenant(tenant_slug)
    text = file.read()
    with tenant_transaction(chosen.id):
        made = (update_template if replace else add_template)(text=text, actor=actor())
    verb = "Replaced" if replace else "Added"
    show(
        {"template": made.name, "version": made.version, "tenant": chosen.slug},
        as_json=as_json,
        people=f"{verb} template [bold]{made.name}[/bold] {escape(made.version)} of {chosen.slug}. Next:"
        f" [bold]arbor agent create NAME --template {made.name} --tenant {chosen.slug}[/bold]",
    )


def _find(name: str, tenant_slug: str | None) -> FoundTemplate:
    if tenant_slug is None and only_tenant() is None:
        found = {each.name.casefold(): each for each in list_builtin_templates()}
        if name.casefold() in found:
            return found[name.casefold()]
    with tenant_transaction(choose_tenant(tenant_slug).id):
        return find_template(name)


def _line(found: FoundTemplate) -> dict[str, Any]:
    return {
        "name": found.name,
        "version": found.version,
        "origin": found.origin.value,
        "trust_tier": found.spec.trust_tier.value,
        "description": found.spec.description,
        "goals": len(found.spec.initial_goals),
        "actions": list(found.spec.actions),
    }


def _cells(found: FoundTemplate) -> tuple[object, ...]:
    spec = found.spec
    return (
        found.name,
        found.version,
        found.origin,
        spec.trust_tier,
        len(spec.initial_goals),
        len(spec.actions),
    )


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0]
