"""Seed built-in templates; add, update and find a tenant's own templates, which take precedence over built-in ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from django.db import IntegrityError, transaction
from pydantic import ValidationError

from apps.agents.models import BuiltinTemplate, Template
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.signals.services.reading import match_names
from apps.tenants.scope import OPS, current_tenant
from arbor.agents.energy import check_terms, terms_of
from arbor.agents.template import TemplateSource, TemplateSpec, load_builtin_templates, parse_template
from arbor.audit.changes import AuditChange, change_of
from arbor.errors import AlreadyExists, Invalid, NotFound, TemplateInvalid
from arbor.heartbeat.actions import ACTIONS, DEFAULT_COSTS
from arbor.heartbeat.steps import HANDLERS
from arbor.knowledge.subscriptions import check_names
from arbor.pipeline.graph import load_graph


@dataclass(frozen=True, kw_only=True)
class FoundTemplate:
    """A template that the current tenant can use."""

    name: str
    version: str
    origin: TemplateSource
    source_text: str
    spec: TemplateSpec


@dataclass(frozen=True, kw_only=True)
class UnreadableTemplate:
    """A stored template that this version of Arbor cannot read, and why."""

    name: str
    version: str
    origin: TemplateSource
    source_text: str
    fault: str


class SeedChange(StrEnum):
    """The change that seeding makes to a built-in template."""

    #: The database does not have the template.
    NEW = "new"
    #: The text in the database differs from the code.
    CHANGED = "changed"
    #: The text in the database is that of the code.
    UNCHANGED = "unchanged"
    #: The code no longer has the template.
    REMOVED = "removed"


def read_template(text: str) -> TemplateSpec:
    """Parse a template's Markdown; raises TemplateInvalid and PipelineInvalid with all faults."""
    spec = parse_template(text, known_actions=ACTIONS)
    if spec.pipeline:
        load_graph(spec.pipeline, handlers=HANDLERS)
    try:
        for request in spec.subscriptions:
            check_names({name for wanted in request.signals for name in match_names(wanted)}, request.source)
    except Invalid as error:
        raise TemplateInvalid(
            f"template {spec.name}: subscriptions: {error}", faults=[f"subscriptions: {error}"]
        ) from error
    try:
        check_terms(terms_of(spec.energy), default_costs=DEFAULT_COSTS)
    except Invalid as error:
        raise TemplateInvalid(
            f"template {spec.name}: energy: {error}", faults=[f"energy: {error}"]
        ) from error
    return spec


# --- Built-in ----------------------------------------------------------------------------------------


def seed_builtin_templates(*, dry_run: bool = False) -> dict[str, SeedChange]:
    """Update the built-in templates from the code; return the changes, made or planned, by name."""
    with transaction.atomic(using=OPS):
        rows = {row.name: row for row in BuiltinTemplate.objects.using(OPS).select_for_update()}
        changes: dict[str, SeedChange] = {}
        new: list[BuiltinTemplate] = []
        for text, spec in _builtin_files():
            row = rows.pop(spec.name, None)
            if row is None:
                changes[spec.name] = SeedChange.NEW
                new.append(BuiltinTemplate(name=spec.name))
                _fill(new[-1], text, spec)
            else:
                changes[spec.name] = _update(row, text, spec, dry_run=dry_run)
        if not dry_run:
            BuiltinTemplate.objects.using(OPS).bulk_create(new)
        for name, row in rows.items():
            changes[name] = SeedChange.REMOVED
            if not dry_run:
                row.delete(using=OPS)
    return changes


@lru_cache(maxsize=1)
def _builtin_files() -> tuple[tuple[str, TemplateSpec], ...]:
    return load_builtin_templates(known_actions=ACTIONS)


def _update(row: BuiltinTemplate, text: str, spec: TemplateSpec, *, dry_run: bool) -> SeedChange:
    if row.content_hash == _hash(text) and row.spec == spec.model_dump(mode="json"):
        return SeedChange.UNCHANGED
    if not dry_run:
        _fill(row, text, spec)
        row.save(using=OPS)
    return SeedChange.CHANGED


# --- A tenant's own ----------------------------------------------------------------------------------


@transaction.atomic
def add_template(*, text: str, actor: str) -> Template:
    """Add a template of the current tenant. Raises TemplateInvalid, PipelineInvalid, and AlreadyExists for a name in use."""
    spec = read_template(text)
    if Template.objects.filter(name__iexact=spec.name).exists():
        raise AlreadyExists(
            f"this tenant has a template {spec.name!r} already; update it, or choose another name"
        )
    template = Template(tenant_id=current_tenant(), name=spec.name)
    _fill(template, text, spec)
    try:
        with transaction.atomic():
            template.save(force_insert=True)
    except IntegrityError as error:
        raise AlreadyExists(f"this tenant has a template {spec.name!r} already") from error
    change = change_of({}, {"spec": template.spec})
    _record(f"added template {spec.name} {spec.version}", template, change, actor)
    return template


@transaction.atomic
def update_template(*, text: str, actor: str) -> Template:
    """Replace the current tenant's template of the name in the text; its agents stay unchanged.

    Raises TemplateInvalid, PipelineInvalid, and NotFound when the tenant has none of that name.
    """
    spec = read_template(text)
    template: Template | None = Template.objects.select_for_update().filter(name__iexact=spec.name).first()
    if template is None:
        raise NotFound(f"this tenant has no template {spec.name!r} of its own; add it")
    if template.content_hash == _hash(text) and template.spec == spec.model_dump(mode="json"):
        return template
    previous_version, previous = template.version, template.spec
    _fill(template, text, spec)
    template.save()
    _record(
        f"changed template {spec.name} from {previous_version} to {spec.version}",
        template,
        change_of(previous, template.spec),
        actor,
    )
    return template


def list_templates() -> list[FoundTemplate | UnreadableTemplate]:
    """List the templates for agents of this tenant: its own first, which hide built-in ones, both by name.

    A template that cannot be read is listed with the reason.
    """
    own = [_read_row(row, TemplateSource.USER) for row in Template.objects.all()]
    hidden = {template.name.casefold() for template in own}
    builtin = [template for template in list_builtin_templates() if template.name.casefold() not in hidden]
    return sorted(
        [*own, *builtin],
        key=lambda template: (template.origin is TemplateSource.BUILTIN, template.name.casefold()),
    )


def list_builtin_templates() -> list[FoundTemplate | UnreadableTemplate]:
    """List the built-in templates by name, also those that cannot be read; needs no tenant."""
    return [_read_row(row, TemplateSource.BUILTIN) for row in BuiltinTemplate.objects.order_by("name")]


def find_template(name: str) -> FoundTemplate:
    """Find a template by name: the tenant's own before a built-in one. Raises NotFound, and TemplateInvalid for an unreadable one."""
    own = Template.objects.filter(name__iexact=name.strip()).first()
    if own is not None:
        return _to_found_template(own, TemplateSource.USER)
    builtin = BuiltinTemplate.objects.filter(name__iexact=name.strip()).first()
    if builtin is not None:
        return _to_found_template(builtin, TemplateSource.BUILTIN)
    known = ", ".join(template.name for template in list_templates())
    raise NotFound(
        f"there is no template {name!r}; there is: {known or 'none yet; run `arbor manage seed_templates`'}"
    )


def _read_row(row: BuiltinTemplate | Template, origin: TemplateSource) -> FoundTemplate | UnreadableTemplate:
    try:
        return _to_found_template(row, origin)
    except TemplateInvalid as error:
        return UnreadableTemplate(
            name=row.name,
            version=row.version,
            origin=origin,
            source_text=row.source_text,
            fault=str(error),
        )


def _to_found_template(row: BuiltinTemplate | Template, origin: TemplateSource) -> FoundTemplate:
    try:
        spec = TemplateSpec.model_validate(row.spec)
    except ValidationError as error:
        raise TemplateInvalid(
            f"the {origin} template {row.name} was stored by another version of Arbor, which this version cannot read;"
            " replace the template"
        ) from error
    return FoundTemplate(
        name=row.name,
        version=row.version,
        origin=origin,
        source_text=row.source_text,
        spec=spec,
    )


def _fill(row: BuiltinTemplate | Template, text: str, spec: TemplateSpec) -> None:
    row.name = spec.name
    row.version = spec.version
    row.description = spec.description
    row.source_text = text
    row.spec = spec.model_dump(mode="json")
    row.content_hash = _hash(text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _record(message: str, template: Template, change: AuditChange, actor: str) -> None:
    record(
        action=AuditAction.TEMPLATE_CHANGED,
        actor=actor,
        message=message,
        detail={
            "template": template.name,
            "version": template.version,
            "content_hash": template.content_hash,
        },
        change=change,
    )
