"""A tenant's own keys of model providers, and its default model."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field, SecretStr

from apps.api.authentication import ADMINISTER
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input
from apps.api.scope import own_transactions
from apps.calls.models import ProviderKey
from apps.calls.services.provider_keys import MAX_KEY_LENGTH, MAX_URL_LENGTH
from apps.fleet.tenant_models import connect_provider, disconnect_provider, set_default_model, try_provider
from apps.tenants.models import Tenant

router = Router()


class ProviderResource(Schema):
    """A tenant's own access to a provider."""

    provider: str = Field(examples=["openai"])
    base_url: str = Field(description="The address of the server; empty: the provider's own.")
    key_end: str = Field(description="The last characters of the key, which is never shown again.")
    models: list[str] = Field(description="The models that the provider listed when it was asked last.")
    checked_at: datetime = Field(description="The time of that request.")
    entered_by: str
    entered_at: datetime

    @classmethod
    def of(cls, row: ProviderKey) -> ProviderResource:
        """Return the resource of a row."""
        shown = {name: getattr(row, name) for name in cls.model_fields if name != "models"}
        return cls(**shown, models=row.listed)


class ProviderInput(Input):
    """A tenant's own access to a provider."""

    key: SecretStr = Field(
        default=SecretStr(""),
        max_length=MAX_KEY_LENGTH,
        description="The key; empty for a server that needs none.",
    )
    base_url: Annotated[str, Field(max_length=MAX_URL_LENGTH)] = Field(
        default="", examples=["https://models.example.org/v1"]
    )
    model: Annotated[str, Field(max_length=200)] = Field(
        default="", description="A model of the provider, which becomes the default of the tenant's agents."
    )


class DefaultModel(Schema):
    """The default model of a tenant."""

    model: str = Field(
        description="`provider/model`; empty: the installation's.", examples=["openai/gpt-6-luna"]
    )


class DefaultModelInput(Input):
    """The wanted default model of a tenant."""

    model: Annotated[str, Field(max_length=200)]


@router.get("/providers", response=ListPage[ProviderResource], summary="List providers")
def list_providers(request: HttpRequest, page: Paging) -> ListPage[ProviderResource]:
    """List the providers that the tenant has keys of, without the keys."""
    rows = ProviderKey.objects.defer("sealed_key")
    return page_of(rows, page, order="provider", to_resource=ProviderResource.of)


@router.put("/providers/{provider}", response=ProviderResource, auth=ADMINISTER, summary="Enter a key")
@own_transactions
def put_provider(request: HttpRequest, provider: str, payload: ProviderInput) -> ProviderResource:
    """Try a key of a provider by a request, and store it encrypted; it replaces an earlier key. A key that does not work is refused."""
    access = access_of(request)
    row = connect_provider(
        tenant_id=access.tenant_id,
        provider=provider,
        key=payload.key.get_secret_value(),
        base_url=payload.base_url,
        model=payload.model,
        actor=access.actor,
    )
    return ProviderResource.of(row)


@router.post(
    "/providers/{provider}/test", response=ProviderResource, auth=ADMINISTER, summary="Try a stored key"
)
@own_transactions
def check_provider(request: HttpRequest, provider: str) -> ProviderResource:
    """Try a stored key by a request, and store the models that the provider lists now."""
    return ProviderResource.of(try_provider(tenant_id=access_of(request).tenant_id, provider=provider))


@router.delete("/providers/{provider}", response=ProviderResource, auth=ADMINISTER, summary="Remove a key")
@own_transactions
def remove_provider(request: HttpRequest, provider: str) -> ProviderResource:
    """Remove a key, which no further call uses. A default model that needs the key is replaced by the installation's."""
    access = access_of(request)
    return ProviderResource.of(
        disconnect_provider(tenant_id=access.tenant_id, provider=provider, actor=access.actor)
    )


@router.get("/default-model", response=DefaultModel, summary="Show the default model")
def show_default_model(request: HttpRequest) -> DefaultModel:
    """Show the model of the tenant's agents that have no model of their own."""
    return DefaultModel(model=Tenant.objects.get(id=access_of(request).tenant_id).default_model)


@router.put("/default-model", response=DefaultModel, auth=ADMINISTER, summary="Choose the default model")
@own_transactions
def put_default_model(request: HttpRequest, payload: DefaultModelInput) -> DefaultModel:
    """Choose the model of the tenant's agents that have no model of their own."""
    access = access_of(request)
    tenant = set_default_model(tenant_id=access.tenant_id, model=payload.model, actor=access.actor)
    return DefaultModel(model=tenant.default_model)
