"""Show, check and add templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from rich.console import Group
from rich.markup import escape
from rich.syntax import Syntax

from apps.agents.services.templates import (
    FoundTemplate,
    UnreadableTemplate,
    add_template,
    find_template,
    list_builtin_templates,
    list_templates,
    read_template,
    update_template,
)
from apps.tenants.scope import tenant_transaction
from arbor.agents.template import TemplateSpec
from arbor.errors import TemplateInvalid
from arbor.quotations import counted
from config.cli.kit.columns import OutputColumn, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.output import print_note
from config.cli.kit.tenancy import actor, choose_tenant, default_tenant
from config.cli.kit.text_files import read_text

TEMPLATE_COLUMNS = (
    OutputColumn("name", "template"),
    OutputColumn("version", "version"),
    OutputColumn("origin", "origin", value=lambda template: template.origin.value),
    OutputColumn(
        "trust_tier", "trust", value=lambda template: _of_spec(template, lambda spec: spec.trust_tier.value)
    ),
    OutputColumn(
        "goals", "goals", value=lambda template: _of_spec(template, lambda spec: len(spec.initial_goals))
    ),
    OutputColumn(
        "actions",
        "actions",
        value=lambda template: _of_spec(template, lambda spec: list(spec.actions)),
        cell=lambda actions: len(actions) if actions else "",
    ),
    OutputColumn(
        "description",
        "about",
        value=lambda template: _about(template),
        cell=lambda text: _first_sentence(text),
    ),
    OutputColumn("fault", value=lambda template: getattr(template, "fault", "")),
)


def list_all(tenant_slug: str | None) -> Output:
    """List the templates: a tenant's own first, then the built-in ones."""
    if tenant_slug is None and default_tenant() is None:
        print_note("the built-in templates; --tenant SLUG adds a tenant's own")
        templates = list_builtin_templates()
    else:
        with tenant_transaction(choose_tenant(tenant_slug).id):
            templates = list_templates()
    return listing(
        "templates",
        templates,
        TEMPLATE_COLUMNS,
        empty="No template yet. Write the built-in ones: [bold]arbor manage seed_templates[/bold]",
    )


def show_one(name: str, tenant_slug: str | None) -> Output:
    """Show a template as it was written."""
    template = _find(name, tenant_slug)
    head = f"[bold]{template.name}[/bold] {escape(template.version)} ({template.origin})"
    return Output(
        {
            **row_to_dict(template, TEMPLATE_COLUMNS),
            "spec": template.spec.model_dump(mode="json"),
            "source_text": template.source_text,
        },
        text=Group(
            head, Syntax(template.source_text, "markdown", word_wrap=True, background_color="default")
        ),
    )


def validate(file: TextIO) -> Output:
    """Check a template file, and list every fault with its line."""
    spec = read_template(read_text(file))
    return Output(
        {"valid": True, "name": spec.name, "version": spec.version},
        text=f"{spec.name} {escape(spec.version)} is valid: {counted(len(spec.initial_goals), 'goal')},"
        f" actions {', '.join(spec.actions)}.",
    )


def add(file: TextIO, replace: bool, tenant_slug: str | None) -> Output:
    """Add a tenant's own template from a file, or replace it; existing agents stay as they are."""
    tenant = choose_tenant(tenant_slug)
    text = read_text(file)
    with tenant_transaction(tenant.id):
        stored = (update_template if replace else add_template)(text=text, actor=actor())
    verb = "Replaced" if replace else "Added"
    return Output(
        {"template": stored.name, "version": stored.version, "tenant": tenant.slug},
        text=f"{verb} template [bold]{stored.name}[/bold] {escape(stored.version)} of {tenant.slug}. Next:"
        f" [bold]arbor agent create NAME --template {stored.name} --tenant {tenant.slug}[/bold]",
    )


def _find(name: str, tenant_slug: str | None) -> FoundTemplate:
    if tenant_slug is None and default_tenant() is None:
        builtin = {template.name.casefold(): template for template in list_builtin_templates()}
        found = builtin.get(name.casefold())
        if isinstance(found, UnreadableTemplate):
            raise TemplateInvalid(found.fault)
        if found is not None:
            return found
    with tenant_transaction(choose_tenant(tenant_slug).id):
        return find_template(name)


def _of_spec[T](template: FoundTemplate | UnreadableTemplate, read: Callable[[TemplateSpec], T]) -> T | None:
    """Return a part of a template's content; None for one that cannot be read."""
    return read(template.spec) if isinstance(template, FoundTemplate) else None


def _about(template: FoundTemplate | UnreadableTemplate) -> str:
    if isinstance(template, UnreadableTemplate):
        return f"unreadable: {template.fault}"
    return template.spec.description


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0]
