"""Rotate the master key: seal anew, in small transactions and while the fleet runs, what the other key has sealed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import models

from apps.audit.models import AuditAction
from apps.audit.services import record_platform
from apps.fleet.sealed_columns import (
    AGENT_KEYS,
    AUTHORITY_KEYS,
    HOOK_SECRETS,
    PROVIDER_KEYS,
    SESSIONS,
    SIGNAL_WEBHOOK_SECRETS,
    TOOL_SERVER_SECRETS,
    WEBHOOK_SECRETS,
    OpenTransaction,
    SealedColumn,
)
from apps.tenants.role_passwords import derived_aliases, key_of_role, set_role_password
from arbor.errors import SealBroken, TransitionIllegal
from arbor.sealing import MasterKeys

#: Rows sealed anew in one transaction, which locks them.
BATCH = 500
ROLE_PASSWORDS = "role passwords"
#: Errors in a report at most.
_ERRORS_SHOWN = 20

#: Reports the number of rows read so far, and of all rows.
type Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, kw_only=True)
class KeyUse:
    """The number of secrets of one kind by the key that sealed them."""

    kind: str
    #: By key id.
    sealed: dict[str, int]
    #: Secrets that no open key opens.
    unreadable: int = 0
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """The result of one run: what was sealed anew, by kind, and the use of the keys afterwards."""

    changed: dict[str, int]
    uses: tuple[KeyUse, ...] = field(repr=False)

    def is_complete(self, keys: MasterKeys) -> bool:
        """Return whether the current key alone is in use. Sessions that no key opens have ended and do not count."""
        return not used_by(keys.other_id, self.uses) and not any(
            use.unreadable for use in self.uses if use.kind != SESSIONS.kind
        )


def rotate_keys(
    *, keys: MasterKeys, actor: str, batch: int = BATCH, progress: Progress = lambda _done, _total: None
) -> Rotation:
    """Seal everything under the current key; a run that was interrupted anywhere is continued by the next one.

    Rows that no open key opens are left as they are, and reported.
    """
    ids = {"current": keys.current_id, "other": keys.other_id}
    _record(actor, f"began to seal secrets under the master key {keys.current_id}", ids)
    changed = Counter({ROLE_PASSWORDS: _change_role_passwords(keys)})
    work = [(column, open_transaction) for column in _columns() for open_transaction in column.transactions()]
    total = sum(_count(column, open_transaction) for column, open_transaction in work)
    done = 0
    for column, open_transaction in work:
        for read, renewed in _renew_rows(column, open_transaction, keys, batch):
            changed[column.kind] += renewed
            done += read
            progress(done, total)
    rotation = Rotation(changed=dict(changed), uses=key_uses(keys))
    numbers = ", ".join(f"{number} {kind}" for kind, number in changed.items())
    _record(
        actor, f"sealed under the master key {keys.current_id}: {numbers}", ids | {"changed": dict(changed)}
    )
    return rotation


def key_uses(keys: MasterKeys) -> tuple[KeyUse, ...]:
    """Count the secrets of each kind by the key that opens them, by opening every secret."""
    return (_use_of_roles(), *(_use_of(column, keys) for column in _columns()))


def used_by(key: str | None, uses: tuple[KeyUse, ...]) -> dict[str, int]:
    """Return the number of secrets that a key has sealed, by kind, without the kinds that have none."""
    return {use.kind: use.sealed[key] for use in uses if key is not None and use.sealed.get(key)}


def require_unused(keys: MasterKeys) -> str:
    """Return the id of the other key. Raises TransitionIllegal without one, or while it seals anything."""
    if keys.other_id is None:
        raise TransitionIllegal(f"only one master key is open, {keys.current_id}: there is none to retire")
    used = used_by(keys.other_id, key_uses(keys))
    if used:
        numbers = ", ".join(f"{number} {kind}" for kind, number in used.items())
        raise TransitionIllegal(
            f"the master key {keys.other_id} still seals {numbers}: run `arbor keys rotate` first"
        )
    return keys.other_id


def record_retirement(*, key: str, actor: str) -> None:
    """Audit that a master key opens nothing any more."""
    _record(actor, f"retired the master key {key}", {"other": key})


def _columns() -> tuple[SealedColumn, ...]:
    of_sessions = (SESSIONS,) if settings.ARBOR_SESSIONS_DERIVED else ()
    return (
        AUTHORITY_KEYS,
        AGENT_KEYS,
        WEBHOOK_SECRETS,
        SIGNAL_WEBHOOK_SECRETS,
        HOOK_SECRETS,
        TOOL_SERVER_SECRETS,
        PROVIDER_KEYS,
        *of_sessions,
    )


def _change_role_passwords(keys: MasterKeys) -> int:
    aliases = [alias for alias in derived_aliases() if key_of_role(alias) != keys.current_id]
    for alias in aliases:
        set_role_password(alias)
    return len(aliases)


def _count(column: SealedColumn, open_transaction: OpenTransaction) -> int:
    with open_transaction():
        return column.rows().count()


def _batches(
    column: SealedColumn, open_transaction: OpenTransaction, batch: int, *, lock: bool
) -> Iterator[list[Any]]:
    """Yield rows in the order of their keys, each batch within its own transaction."""
    last = None
    while True:
        with open_transaction():
            rows = column.rows().order_by(column.order)
            if last is not None:
                rows = rows.filter(**{f"{column.order}__gt": last})
            if lock:
                rows = rows.select_for_update(of=("self",), no_key=True)
            found = list(rows[:batch])
            yield found
        if len(found) < batch:
            return
        last = getattr(found[-1], column.order)


def _renew_rows(
    column: SealedColumn, open_transaction: OpenTransaction, keys: MasterKeys, batch: int
) -> Iterator[tuple[int, int]]:
    """Yield the numbers of rows read and of rows sealed anew, batch by batch, before the transaction of the batch commits."""
    for rows in _batches(column, open_transaction, batch, lock=True):
        renewed = [row for row in rows if _is_outdated(column, row, keys)]
        for row in renewed:
            setattr(row, column.field, column.renew(row, keys))
        if renewed:
            manager: models.Manager[Any] = type(renewed[0])._default_manager
            manager.bulk_update(renewed, [column.field])
        yield len(rows), len(renewed)


def _is_outdated(column: SealedColumn, row: Any, keys: MasterKeys) -> bool:
    try:
        return column.key_of(row, keys) != keys.current_id
    except SealBroken:
        return False


def _use_of(column: SealedColumn, keys: MasterKeys) -> KeyUse:
    sealed: Counter[str] = Counter()
    errors: list[str] = []
    unreadable = 0
    for open_transaction in column.transactions():
        for rows in _batches(column, open_transaction, BATCH, lock=False):
            for row in rows:
                try:
                    sealed[column.key_of(row, keys)] += 1
                except SealBroken as error:
                    unreadable += 1
                    errors += [str(error)] if len(errors) < _ERRORS_SHOWN else []
    return KeyUse(kind=column.kind, sealed=dict(sealed), unreadable=unreadable, errors=tuple(errors))


def _use_of_roles() -> KeyUse:
    roles = {alias: key_of_role(alias) for alias in derived_aliases()}
    foreign = [
        f"the password of the role of {alias} is of another key" for alias, key in roles.items() if not key
    ]
    return KeyUse(
        kind=ROLE_PASSWORDS,
        sealed=dict(Counter(key for key in roles.values() if key)),
        unreadable=len(foreign),
        errors=tuple(foreign),
    )


def _record(actor: str, message: str, detail: dict[str, Any]) -> None:
    record_platform(action=AuditAction.OPERATOR_ACT, actor=actor, message=message, detail=detail)
