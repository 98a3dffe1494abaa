"""Templates that agents are created from."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.agents.services.templates import (
    FoundTemplate,
    UnreadableTemplate,
    add_template,
    find_template,
    list_templates,
    read_template,
    update_template,
)
from apps.api.authentication import READ
from apps.api.requests import access_of
from apps.api.rows import Input
from arbor.agents.template import TemplateSource

router = Router()

_Source = Annotated[str, Field(min_length=1, max_length=200_000, description="The template's Markdown.")]


class TemplateResource(Schema):
    """A template that the tenant can use."""

    name: str = Field(examples=["Scout"])
    version: str
    origin: TemplateSource
    description: str
    trust_tier: str
    actions: list[str]
    fault: str = Field(description="Why this version of Arbor cannot read the template; empty if it can.")

    @classmethod
    def of(cls, template: FoundTemplate | UnreadableTemplate) -> TemplateResource:
        """Return the resource of a template."""
        return cls(**_shown(template))


class TemplateDetails(TemplateResource):
    """A template as it was written, and as it is read."""

    source_text: str
    spec: dict[str, Any]


class TemplateList(Schema):
    """Templates: the tenant's own first, then the built-in ones."""

    items: list[TemplateResource]


class TemplateInput(Input):
    """A template's text."""

    source_text: _Source


class TemplateCheck(Schema):
    """The name and version of a valid template."""

    name: str
    version: str


@router.get("/templates", response=TemplateList, summary="List templates")
def list_all(request: HttpRequest) -> TemplateList:
    """List the templates: the tenant's own first, then the built-in ones."""
    return TemplateList(items=[TemplateResource.of(template) for template in list_templates()])


@router.get("/templates/{str:name}", response=TemplateDetails, summary="Show a template")
def show(request: HttpRequest, name: str) -> TemplateDetails:
    """Show a template as it was written."""
    return _details(find_template(name))


@router.post("/check-template", response=TemplateCheck, auth=READ, summary="Check a template")
def check(request: HttpRequest, template: TemplateInput) -> TemplateCheck:
    """Check a template's text; the answer to a wrong text lists every fault with its line."""
    spec = read_template(template.source_text)
    return TemplateCheck(name=spec.name, version=spec.version)


@router.post("/templates", response={201: TemplateDetails}, summary="Add a template")
def add(request: HttpRequest, template: TemplateInput) -> Status[TemplateDetails]:
    """Add a template of the tenant. A template of the same name is answered 409."""
    stored = add_template(text=template.source_text, actor=access_of(request).actor)
    return Status(201, _details(find_template(stored.name)))


@router.put("/templates", response=TemplateDetails, summary="Replace a template")
def replace(request: HttpRequest, template: TemplateInput) -> TemplateDetails:
    """Replace the tenant's template of the text's name; existing agents stay as they are."""
    stored = update_template(text=template.source_text, actor=access_of(request).actor)
    return _details(find_template(stored.name))


def _details(template: FoundTemplate) -> TemplateDetails:
    return TemplateDetails(
        **_shown(template),
        source_text=template.source_text,
        spec=template.spec.model_dump(mode="json"),
    )


def _shown(template: FoundTemplate | UnreadableTemplate) -> dict[str, Any]:
    spec = template.spec if isinstance(template, FoundTemplate) else None
    return {
        "name": template.name,
        "version": template.version,
        "origin": template.origin,
        "description": spec.description if spec else "",
        "trust_tier": spec.trust_tier.value if spec else "",
        "actions": list(spec.actions) if spec else [],
        "fault": template.fault if isinstance(template, UnreadableTemplate) else "",
    }
