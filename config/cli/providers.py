"""Manage a tenant's own keys of model providers, and its default model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from apps.calls.models import ProviderKey
from apps.fleet.tenant_models import (
    connect_provider,
    disconnect_provider,
    listed_in_words,
    set_default_model,
    try_provider,
)
from apps.tenants.models import Tenant
from arbor.adapters.credentials import TENANT_PROVIDERS
from arbor.models.handles import Provider
from config.cli.kit.columns import OutputColumn, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.output import format_relative_time
from config.cli.kit.tenancy import actor, choose_tenant, in_tenant_transaction
from config.cli.kit.text_files import read_secret_text

#: The most models that are named.
_MODELS_SHOWN = 8

_COLUMNS = (
    OutputColumn("provider", "provider"),
    OutputColumn("key_end", "key", cell=lambda end: f"…{end}" if end else "-"),
    OutputColumn("base_url", "address", cell=lambda address: address or "the provider's"),
    OutputColumn("models", "models", value=lambda row: row.listed, cell=len),
    OutputColumn("checked_at", "tried", cell=format_relative_time),
    OutputColumn("entered_by", "entered by"),
    OutputColumn("entered_at", "entered", cell=format_relative_time),
)


@in_tenant_transaction
def list_providers(tenant: Tenant) -> Output:
    """List the providers that a tenant has keys of, without the keys."""
    return listing(
        "providers",
        list(ProviderKey.objects.defer("sealed_key")),
        _COLUMNS,
        about={"tenant": tenant.slug, "default_model": tenant.default_model},
        empty=f"No key yet. Enter one: [bold]arbor provider add openai --tenant {tenant.slug}[/bold]",
    )


def add(
    provider: str,
    tenant_slug: str | None,
    *,
    key_file: Path | None,
    key_stdin: bool,
    no_key: bool,
    base_url: str,
    model: str,
) -> Output:
    """Try a key of a provider and store it encrypted."""
    tenant = choose_tenant(tenant_slug)
    key = _read_key(provider, key_file=key_file, key_stdin=key_stdin, no_key=no_key)
    row = connect_provider(
        tenant_id=tenant.id, provider=provider, key=key, base_url=base_url, model=model, actor=actor()
    )
    works = (
        f"The key of {row.provider} works and is stored." if key else f"{row.provider} answers without a key."
    )
    return Output(_provider_value(row, tenant), text=f"{works} {_models_sentence(row)}")


def test(provider: str, tenant_slug: str | None) -> Output:
    """Try a stored key, and list the models of the provider anew."""
    tenant = choose_tenant(tenant_slug)
    row = try_provider(tenant_id=tenant.id, provider=provider)
    return Output(_provider_value(row, tenant), text=f"{row.provider} answers. {_models_sentence(row)}")


def remove(provider: str, tenant_slug: str | None) -> Output:
    """Remove a key."""
    tenant = choose_tenant(tenant_slug)
    row = disconnect_provider(tenant_id=tenant.id, provider=provider, actor=actor())
    return Output({"removed": _provider_value(row, tenant)}, text=f"The key of {row.provider} is removed.")


def default(model: str | None, tenant_slug: str | None) -> Output:
    """Show or choose the model of agents that name none."""
    tenant = choose_tenant(tenant_slug)
    if model is not None:
        wanted = "" if model == "none" else model
        tenant = set_default_model(tenant_id=tenant.id, model=wanted, actor=actor())
    shown = tenant.default_model or "the installation's model"
    return Output(
        {"tenant": tenant.slug, "default_model": tenant.default_model},
        text=f"Agents of {tenant.slug} without a model of their own use {escape(shown)}.",
    )


def _provider_value(row: ProviderKey, tenant: Tenant) -> dict[str, Any]:
    return {**row_to_dict(row, _COLUMNS), "tenant": tenant.slug}


def _models_sentence(row: ProviderKey) -> str:
    number, names = len(row.listed), escape(", ".join(row.listed[:_MODELS_SHOWN]))
    more = f" and {number - _MODELS_SHOWN:,} more" if number > _MODELS_SHOWN else ""
    return f"It lists {listed_in_words(row)}: {names}{more}." if number else "It lists no models."


def _read_key(provider: str, *, key_file: Path | None, key_stdin: bool, no_key: bool) -> str:
    """Return the key from a file, standard input or a prompt; never from an argument, which other users of the machine see."""
    if sum([key_file is not None, key_stdin, no_key]) > 1:
        raise click.UsageError("give one of --key-file, --key-stdin and --no-key")
    if no_key:
        return ""
    if key_file is not None:
        return read_secret_text(key_file)
    if key_stdin:
        return read_secret_text(sys.stdin)
    if provider not in TENANT_PROVIDERS or provider == Provider.OLLAMA:
        # An unknown provider is refused, and Ollama takes no key: neither is a reason to ask for one.
        return ""
    if not sys.stdin.isatty():
        raise click.UsageError(
            "there is no terminal to ask for a key: use --key-file, --key-stdin or --no-key"
        )
    key: str = click.prompt(f"Key of {provider}", hide_input=True)
    return key.strip()
