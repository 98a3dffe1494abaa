"""Templates that agents are created from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arbor_client.calls import Call, Rows, get, post, put, rows_of, segment
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Template:
    """A template that the tenant can use."""

    name: str
    version: str
    description: str
    #: builtin or user.
    origin: str
    trust_tier: str
    actions: list[str]
    #: Why the server cannot read the template; empty if it can.
    fault: str


@dataclass(frozen=True, kw_only=True)
class TemplateDetails(Template):
    """A template as it was written, and as it is read."""

    #: The template's Markdown.
    source_text: str
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class CheckedTemplate:
    """The name and version of a valid text."""

    name: str
    version: str


class Templates[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about templates."""

    @operation
    def list(self) -> Call[Rows[Template]]:
        """Return the templates: the tenant's own first, then the built-in ones."""
        return rows_of(get(Template, "/templates"))

    @operation
    def get(self, name: str) -> Call[TemplateDetails]:
        """Return a template as it was written."""
        return get(TemplateDetails, f"/templates/{segment(name)}")

    @operation
    def check(self, source_text: str) -> Call[CheckedTemplate]:
        """Check a template's text. Raises Unprocessable, whose `fields` name every fault with its line."""
        return post(CheckedTemplate, "/check-template", {"source_text": source_text})

    @operation
    def add(self, source_text: str) -> Call[TemplateDetails]:
        """Add a template of the tenant. Raises Conflict if its name is in use."""
        return post(TemplateDetails, "/templates", {"source_text": source_text})

    @operation
    def replace(self, source_text: str) -> Call[TemplateDetails]:
        """Replace the tenant's template of the text's name; existing agents stay as they are."""
        return put(TemplateDetails, "/templates", {"source_text": source_text})
