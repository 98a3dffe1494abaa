"""A tenant's own keys of model providers, and its default model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from arbor_client.calls import Call, PagedCall, delete, get, listed, post, put, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A tenant's own access to a provider."""

    provider: str
    #: The address of the server; empty: the provider's own.
    base_url: str
    #: The last characters of the key, which is never shown again.
    key_end: str
    #: The models that the provider listed at the last request.
    models: list[str]
    #: The time of that request.
    checked_at: datetime
    entered_by: str
    entered_at: datetime


@dataclass(frozen=True, kw_only=True)
class DefaultModel:
    """The default model of a tenant."""

    #: `provider/model`; empty: the installation's.
    model: str


class Providers[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about a tenant's keys of model providers."""

    @listing
    def list(self) -> PagedCall[Provider]:
        """List the providers that the tenant has keys of, without the keys."""
        return listed(Provider, "/providers")

    @operation
    def add(self, provider: str, *, key: str = "", base_url: str = "", model: str = "") -> Call[Provider]:
        """Try a key of a provider by a request, and store it encrypted; it replaces an earlier key."""
        body = {"key": key, "base_url": base_url, "model": model}
        return put(Provider, f"/providers/{segment(provider)}", body)

    @operation
    def test(self, provider: str) -> Call[Provider]:
        """Try a stored key by a request, and store the models that the provider lists now."""
        return post(Provider, f"/providers/{segment(provider)}/test")

    @operation
    def remove(self, provider: str) -> Call[Provider | None]:
        """Remove a key, which no further call uses."""
        return delete(Provider, f"/providers/{segment(provider)}")

    @operation
    def default_model(self) -> Call[DefaultModel]:
        """Return the model of the tenant's agents without a model of their own."""
        return get(DefaultModel, "/default-model")

    @operation
    def choose_default_model(self, model: str) -> Call[DefaultModel]:
        """Choose the model of the tenant's agents without a model of their own."""
        return put(DefaultModel, "/default-model", {"model": model})
