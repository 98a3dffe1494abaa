"""Views of a tenant's models: its keys of providers, tried before they are stored, and its default model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from apps.calls.models import ProviderKey
from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.pages.models import read_models
from apps.console.views import console_page, refuse
from apps.fleet.tenant_models import (
    connect_provider,
    disconnect_provider,
    listed_in_words,
    set_default_model,
    try_provider,
)
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, NotFound

#: The fields of the form for a key that are filled in again after an error; never the key.
_REPEATED = ("provider", "base_url", "model")


@require_safe
def show_models(request: HttpRequest) -> HttpResponse:
    """Show the tenant's default model and its keys of providers."""
    require_member(request, to="see its models")
    page = read_models(request.GET)
    return console_page(
        request, "console/models.html", title="Models", page=page, may_own=has_right(request, Right.OWN)
    )


def _connect(request: HttpRequest, tenant_id: UUID) -> str:
    row = connect_provider(
        tenant_id=tenant_id,
        provider=request.POST.get("provider", ""),
        key=request.POST.get("key", ""),
        base_url=request.POST.get("base_url", ""),
        model=request.POST.get("model", ""),
        actor=actor_of(request),
    )
    return f"The key of {row.provider} works and is stored. {_listed(row)}"


def _try(request: HttpRequest, tenant_id: UUID) -> str:
    row = try_provider(tenant_id=tenant_id, provider=request.POST.get("provider", ""))
    return f"{row.provider} answers. {_listed(row)}"


def _disconnect(request: HttpRequest, tenant_id: UUID) -> str:
    row = disconnect_provider(
        tenant_id=tenant_id, provider=request.POST.get("provider", ""), actor=actor_of(request)
    )
    return f"The key of {row.provider} is removed."


def _choose(request: HttpRequest, tenant_id: UUID) -> str:
    tenant = set_default_model(
        tenant_id=tenant_id, model=request.POST.get("model", ""), actor=actor_of(request)
    )
    chosen = tenant.default_model or "the installation's model"
    return f"Agents without a model of their own use {chosen} from now on."


def _listed(row: ProviderKey) -> str:
    return f"It lists {listed_in_words(row)}." if row.listed else "It lists no models."


@dataclass(frozen=True, kw_only=True)
class _ModelsAct:
    """An act on the tenant's models, and its description in the audit log where it is refused."""

    run: Callable[[HttpRequest, UUID], str]
    attempted: str


_ACTS: Mapping[str, _ModelsAct] = MappingProxyType(
    {
        "connect": _ModelsAct(run=_connect, attempted="enter a key of a provider"),
        "try": _ModelsAct(run=_try, attempted="try a key of a provider"),
        "disconnect": _ModelsAct(run=_disconnect, attempted="remove a key of a provider"),
        "choose": _ModelsAct(run=_choose, attempted="choose the default model"),
    }
)


@sensitive_post_parameters("key")
@require_POST
def act_on_models(request: HttpRequest) -> HttpResponse:
    """Apply the posted act, and redirect to the page with the result.

    The middleware opens no transaction for this view, because a provider is asked.
    """
    access, verb = require_member(request, to="change its models"), request.POST.get("act", "")
    if verb not in _ACTS:
        raise NotFound(f"the act must be one of {', '.join(_ACTS)}, got {verb!r}")
    if not has_right(request, Right.OWN):
        with tenant_transaction(access.tenant_id):
            return refuse(request, attempted=_ACTS[verb].attempted, right=Right.OWN)
    page = reverse("admin:models")
    try:
        done = _ACTS[verb].run(request, access.tenant_id)
    except (Invalid, NotFound) as refusal:
        messages.error(request, f"Nothing was changed: {refusal}.")
        entered = {name: request.POST.get(name, "") for name in _REPEATED} if verb == "connect" else {}
        repeated = urlencode({name: text for name, text in entered.items() if text})
        return HttpResponseRedirect(f"{page}?{repeated}" if repeated else page)
    messages.success(request, done)
    return HttpResponseRedirect(page)
