"""The columns whose values depend on the master key, and how each value is opened and sealed anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.contrib.auth import HASH_SESSION_KEY
from django.core.signing import BadSignature
from django.db import models, router, transaction
from django.utils.crypto import constant_time_compare

from apps.agents.models import AgentKey, AuthorityKey
from apps.agents.services.authority import authority_keys, seal_authority_key, unseal_authority_key
from apps.calls.models import ProviderKey
from apps.contacts.models import Channel, Hook, SignalWebhook
from apps.tenants.models import ConsoleSession, Tenant, User
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.sessions import read_session, sign_session
from apps.tools.models import ToolServer
from arbor.agents.identity import PrivateKey, seal_private_key, unseal_private_key
from arbor.agents.keys import KeyPurpose, key_label
from arbor.contacts.signing import SIGNING_SECRETS
from arbor.errors import SealBroken
from arbor.models.provider_keys import seal_provider_key, unseal_provider_key
from arbor.sealing import MasterKeys, OpenedSecret, RowSecrets, SealedRecord
from arbor.tools.ports import SERVER_SECRETS

#: Opens the transaction in which rows of one tenant, or of the installation, are read and written.
type OpenTransaction = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, kw_only=True)
class SealedColumn:
    """A column of values that a master key has sealed or signed."""

    #: The name in reports.
    kind: str
    rows: Callable[[], models.QuerySet[Any]]
    field: str
    #: The field that orders the rows.
    order: str
    #: Returns the id of the key that sealed a row. Raises SealBroken where none of the open keys has.
    key_of: Callable[[Any, MasterKeys], str]
    #: Returns the value of a row, sealed under the current key.
    renew: Callable[[Any, MasterKeys], Any]
    #: Opens the transactions that together reach all rows.
    transactions: Callable[[], Iterator[OpenTransaction]]


def _of_tenants() -> Iterator[OpenTransaction]:
    # The operations role may not read secrets, so each tenant's rows are reached in its own transactions.
    for tenant_id in list(Tenant.objects.using(OPS).order_by("id").values_list("id", flat=True)):
        yield partial(tenant_transaction, tenant_id)


def _of_installation() -> Iterator[OpenTransaction]:
    yield partial(transaction.atomic, using=router.db_for_write(AuthorityKey))


def _of_sessions() -> Iterator[OpenTransaction]:
    yield partial(transaction.atomic, using=router.db_for_write(ConsoleSession))


def _agent_keys() -> models.QuerySet[Any]:
    rows: models.QuerySet[Any] = AgentKey.objects.select_related("agent").exclude(sealed_private_key={})
    return rows


def _open_agent_key(row: AgentKey, keys: MasterKeys) -> OpenedSecret:
    return unseal_private_key(
        SealedRecord.from_json(row.sealed_private_key),
        keys=keys,
        agent_public_id=row.agent.public_id,
        tenant_id=str(row.tenant_id),
        label=key_label(KeyPurpose(row.purpose), row.number),
    )


def _renew_agent_key(row: AgentKey, keys: MasterKeys) -> dict[str, int | str]:
    return seal_private_key(
        PrivateKey(raw=_open_agent_key(row, keys).raw),
        keys=keys,
        agent_public_id=row.agent.public_id,
        tenant_id=str(row.tenant_id),
        label=key_label(KeyPurpose(row.purpose), row.number),
    ).to_json()


def _open_authority_key(row: AuthorityKey, keys: MasterKeys) -> OpenedSecret:
    return unseal_authority_key(row.sealed_private_key, number=row.number, keys=keys)


def _renew_authority_key(row: AuthorityKey, keys: MasterKeys) -> dict[str, int | str]:
    private = PrivateKey(raw=_open_authority_key(row, keys).raw)
    return seal_authority_key(private, number=row.number, keys=keys)


def _webhook_channels() -> models.QuerySet[Any]:
    rows: models.QuerySet[Any] = Channel.objects.exclude(sealed_secret={})
    return rows


def _tool_servers() -> models.QuerySet[Any]:
    rows: models.QuerySet[Any] = ToolServer.objects.exclude(sealed_secret={})
    return rows


def _provider_keys() -> models.QuerySet[Any]:
    rows: models.QuerySet[Any] = ProviderKey.objects.exclude(sealed_key={})
    return rows


def _open_provider_key(row: ProviderKey, keys: MasterKeys) -> OpenedSecret:
    return unseal_provider_key(
        row.sealed_key, keys=keys, tenant_id=row.tenant_id, provider=row.provider, base_url=row.base_url
    )


def _renew_provider_key(row: ProviderKey, keys: MasterKeys) -> dict[str, Any]:
    return seal_provider_key(
        _open_provider_key(row, keys).raw.decode(),
        keys=keys,
        tenant_id=row.tenant_id,
        provider=row.provider,
        base_url=row.base_url,
    )


def _sessions() -> models.QuerySet[Any]:
    return ConsoleSession.objects.select_related("user")


def _key_of_session(row: ConsoleSession, keys: MasterKeys) -> str:
    try:
        return keys.ids[read_session(row.session_data)[1]]
    except BadSignature as error:
        raise SealBroken(f"the session {row.public_id} was signed by another key; it has ended") from error


def _renew_session(row: ConsoleSession, _keys: MasterKeys) -> str:
    session, _ = read_session(row.session_data)
    user: User | None = row.user
    if user is not None and HASH_SESSION_KEY in session:
        hashes = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
        # A session that a new password has ended stays ended.
        if any(constant_time_compare(session[HASH_SESSION_KEY], known) for known in hashes):
            session[HASH_SESSION_KEY] = hashes[0]
    return sign_session(session)


def _sealed_column(
    kind: str,
    rows: Callable[[], models.QuerySet[Any]],
    field: str,
    open_secret: Callable[[Any, MasterKeys], OpenedSecret],
    renew: Callable[[Any, MasterKeys], Any],
) -> SealedColumn:
    """Return a column of tenants' rows whose values are sealed records."""
    return SealedColumn(
        kind=kind,
        rows=rows,
        field=field,
        order="id",
        key_of=lambda row, keys: open_secret(row, keys).key_id,
        renew=renew,
        transactions=_of_tenants,
    )


def _secret_column(kind: str, rows: Callable[[], models.QuerySet[Any]], secrets: RowSecrets) -> SealedColumn:
    """Return a column of secrets that are bound to their rows."""

    def unseal(row: Any, keys: MasterKeys) -> OpenedSecret:
        return secrets.unseal(row.sealed_secret, keys=keys, tenant_id=row.tenant_id, row_id=row.id)

    def renew(row: Any, keys: MasterKeys) -> dict[str, Any]:
        secret = unseal(row, keys).raw.decode()
        return secrets.seal(secret, keys=keys, tenant_id=row.tenant_id, row_id=row.id)

    return _sealed_column(kind, rows, "sealed_secret", unseal, renew)


AGENT_KEYS = _sealed_column(
    "agent keys", _agent_keys, "sealed_private_key", _open_agent_key, _renew_agent_key
)
AUTHORITY_KEYS = replace(
    _sealed_column(
        "keys of the System Authority",
        authority_keys,
        "sealed_private_key",
        _open_authority_key,
        _renew_authority_key,
    ),
    order="number",
    transactions=_of_installation,
)
WEBHOOK_SECRETS = _secret_column("webhook secrets", _webhook_channels, SIGNING_SECRETS)
SIGNAL_WEBHOOK_SECRETS = _secret_column("signal webhook secrets", SignalWebhook.objects.all, SIGNING_SECRETS)
HOOK_SECRETS = _secret_column("hook secrets", Hook.objects.all, SIGNING_SECRETS)
TOOL_SERVER_SECRETS = _secret_column("tool server secrets", _tool_servers, SERVER_SECRETS)
PROVIDER_KEYS = _sealed_column(
    "provider keys", _provider_keys, "sealed_key", _open_provider_key, _renew_provider_key
)
#: Only where `SECRET_KEY` is derived from the master key.
SESSIONS = SealedColumn(
    kind="sessions",
    rows=_sessions,
    field="session_data",
    order="session_key",
    key_of=_key_of_session,
    renew=_renew_session,
    transactions=_of_sessions,
)
