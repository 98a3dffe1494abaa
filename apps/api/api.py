"""The REST API: one router for each feature."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import orjson
from django.http import HttpRequest
from ninja import NinjaAPI, Router
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser
from ninja.renderers import BaseRenderer

from apps.api.authentication import BY_METHOD
from apps.api.problems import CONTENT_TYPE, Problem, handle_errors
from apps.api.routers import (
    administration,
    agents,
    approvals,
    audit,
    boundaries,
    capabilities,
    chat,
    contacts,
    documents,
    episodes,
    goals,
    graph,
    heartbeats,
    hooks,
    identities,
    knowledge,
    memories,
    policies,
    providers,
    recall,
    search,
    seeds,
    self_history,
    selves,
    signals,
    skills,
    subscriptions,
    templates,
    tenant,
    tiers,
    tools,
    webhooks,
    workflows,
)
from apps.api.scope import in_tenant
from apps.tenants.encoding import to_json_bytes

VERSION = "1.0.0"
PATH = "/api/v1"
#: The routers, each with its tag in the OpenAPI document. A new feature adds its router here.
ROUTERS: tuple[tuple[str, Router], ...] = (
    # Before the agents, whose verbs have the same form of path.
    ("chat", chat.router),
    # Before the agents too.
    ("approvals", approvals.router),
    ("seeds", seeds.router),
    ("agents", agents.router),
    ("identities", identities.router),
    ("tiers", tiers.router),
    ("signals", signals.router),
    ("webhooks", webhooks.router),
    ("tools", tools.router),
    ("hooks", hooks.router),
    ("templates", templates.router),
    ("documents", documents.router),
    ("skills", skills.router),
    ("subscriptions", subscriptions.router),
    ("memories", memories.router),
    ("knowledge", knowledge.router),
    ("recall", recall.router),
    ("search", search.router),
    ("episodes", episodes.router),
    ("graph", graph.router),
    ("goals", goals.router),
    ("workflows", workflows.router),
    ("selves", selves.router),
    ("selves", self_history.router),
    ("boundaries", boundaries.router),
    ("capabilities", capabilities.router),
    ("contacts", contacts.router),
    ("heartbeats", heartbeats.router),
    ("policies", policies.router),
    ("providers", providers.router),
    ("audit", audit.router),
    ("administration", administration.router),
    ("tenant", tenant.router),
)

_DESCRIPTION = """
Everything the command line does, over HTTP. A request names its tenant by its token: `Authorization: Bearer arbor_…`.

Lists have pages: `limit` and `cursor`. Errors are problem details (RFC 9457).
"""


class StrictParser(Parser):
    """Parses bodies as strict JSON: NaN and lone surrogates, which no column can store, are refused."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Parse the body of a request. Raises ValueError, which is answered 400."""
        return orjson.loads(request.body)


class FastRenderer(BaseRenderer):
    """Writes responses as JSON."""

    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        """Return the data as JSON."""
        return to_json_bytes(data)


class ArborAPI(NinjaAPI):
    """The API, whose OpenAPI document has the errors of each operation."""

    def get_openapi_schema(self, **_options: Any) -> OpenAPISchema:
        """Return the OpenAPI document, with the response to an error for each operation. Do not change it."""
        return self._document

    @cached_property
    def _document(self) -> OpenAPISchema:
        # Built once: it takes half a second of a processor, and anybody may request it.
        document = super().get_openapi_schema(path_prefix=PATH + "/")
        document["components"]["schemas"]["Problem"] = Problem.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        document["components"]["schemas"] |= document["components"]["schemas"]["Problem"].pop("$defs", {})
        error = {
            "description": "The request is refused, or failed.",
            "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for operations in document["paths"].values():
            for operation in operations.values():
                answers = {str(status): answer for status, answer in operation["responses"].items()}
                operation["responses"] = {**answers, "default": error}
        return document


def create_api() -> ArborAPI:
    """Return the API with all its operations."""
    created = ArborAPI(
        title="Arbor",
        version=VERSION,
        description=_DESCRIPTION.strip(),
        urls_namespace="api",
        auth=BY_METHOD,
        docs_url=None,
        parser=StrictParser(),
        renderer=FastRenderer(),
    )
    handle_errors(created)
    created.add_decorator(in_tenant)
    for name, router in ROUTERS:
        created.add_router("", router, tags=[name])
    return created


api = create_api()
