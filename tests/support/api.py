"""The API, called as a program calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from apps.access.services import create_token
from apps.api.api import PATH
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction

#: Settings of the API's process that differ from the console's (`config.api_settings`).
API_SETTINGS = {
    "ROOT_URLCONF": "apps.api.urls",
    "MIDDLEWARE": ["apps.api.middleware.ApiMiddleware"],
}


@dataclass(frozen=True, kw_only=True)
class Caller:
    """A program with a token."""

    token: str
    client: Client = field(default_factory=Client)

    def get(self, path: str, **query: Any) -> Any:
        return self._call("get", path, query_params=query)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send("post", path, body, **headers)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a body as JSON; names of headers are written with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        data = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        return self._call(method, path, headers=named, **data)

    def delete(self, path: str, **query: Any) -> Any:
        return self._call("delete", path, query_params=query)

    def _call(self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any) -> Any:
        call: Callable[..., Any] = getattr(self.client, method)
        authorization = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return call(f"{PATH}{path}", headers={**authorization, **(headers or {})}, **options)


def caller_of(tenant: Tenant, role: Role = Role.OWNER, **options: Any) -> Caller:
    """Return a program with a new token of the tenant."""
    with tenant_transaction(tenant.id):
        new = create_token(name=f"{role} {options}", role=role, actor="test", **options)
    return Caller(token=new.text)
