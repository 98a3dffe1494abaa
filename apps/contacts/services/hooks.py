"""Manage hooks: the addresses at which other systems post what an agent should perceive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.models import Hook
from apps.contacts.services.signing_secrets import OVERLAP, SecretPair, rotate_secret, seal_pair
from apps.tenants.limits import check_row_limit
from apps.tenants.names import find_by_name, insert_named_row, valid_row_name
from apps.tenants.scope import current_tenant
from arbor.contacts.hook_messages import parse_body
from arbor.contacts.hook_signatures import check_header, check_secret
from arbor.contacts.hooks import HookKind, HookMapping, HookMessage, valid_events
from arbor.contacts.standard_webhooks import new_standard_secret
from arbor.errors import Invalid, NotFound
from arbor.ids import uuid7

#: Hooks of a tenant at most.
MAX_HOOKS = 100
NAME_LENGTH = 60


@dataclass(frozen=True, kw_only=True)
class NewHook:
    """A hook to create."""

    name: str
    agent_id: UUID
    kind: HookKind = HookKind.JSON
    #: Empty: the headers of Standard Webhooks.
    signature_header: str = ""
    mapping: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[str] = ()
    urgent_from: float | None = None
    #: The secret that the sender generated; empty: Arbor generates one.
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True)
class HookWithSecret:
    """A hook, and its new secret, which is shown once."""

    hook: Hook
    secret: str = field(repr=False)


@transaction.atomic
def create_hook(new: NewHook, *, actor: str) -> HookWithSecret:
    """Create a hook of an agent. Raises Invalid, NotFound for the agent, AlreadyExists, LimitReached."""
    hook = Hook(
        id=uuid7(),
        tenant_id=current_tenant(),
        name=valid_row_name(new.name, whose="a hook's", longest=NAME_LENGTH),
        agent=agent_by_id(new.agent_id),
        kind=HookKind(new.kind),
        signature_header=_valid_header(new),
        urgent_from=_valid_urgency(new.urgent_from),
        events=valid_events(new.events),
        mapping=_valid_mapping(HookKind(new.kind), new.mapping),
    )
    check_row_limit(
        Hook.objects.all(),
        most=MAX_HOOKS,
        refusal=f"a tenant has at most {MAX_HOOKS} hooks; delete one that is not needed",
    )
    secret = _new_secret(hook, new.secret)
    hook.sealed_secret = seal_pair(SecretPair(current=secret), row=hook)
    insert_named_row(hook, hook.name, noun="hook", constraint="contacts_hook_name")
    _audit(hook, actor, f"created the hook {hook.name} ({hook.kind})")
    return HookWithSecret(hook=hook, secret=secret)


@transaction.atomic
def change_hook(
    *,
    hook_id: UUID,
    actor: str,
    mapping: Mapping[str, Any] | None = None,
    events: Sequence[str] | None = None,
    urgent_from: float | None,
) -> Hook:
    """Change a hook: its mapping and its events, which stay if None, and its urgency, where None is never urgent.

    Raises Invalid, NotFound.
    """
    hook = lock_hook(hook_id)
    if mapping is not None:
        hook.mapping = _valid_mapping(HookKind(hook.kind), mapping)
    if events is not None:
        hook.events = valid_events(events)
    hook.urgent_from = _valid_urgency(urgent_from)
    hook.save(update_fields=["mapping", "events", "urgent_from"])
    _audit(hook, actor, f"changed the hook {hook.name}")
    return hook


@transaction.atomic
def switch_hook(*, hook_id: UUID, active: bool, actor: str) -> Hook:
    """Switch a hook on or off. Deliveries to one that is off are refused, so that their senders repeat them."""
    hook = lock_hook(hook_id)
    if hook.active != active:
        hook.active = active
        hook.save(update_fields=["active"])
        _audit(hook, actor, f"switched the hook {hook.name} {'on' if active else 'off'}")
    return hook


@transaction.atomic
def rotate_hook_secret(
    *, hook_id: UUID, actor: str, secret: str = "", overlap: timedelta = OVERLAP
) -> HookWithSecret:
    """Give a hook a new secret: the sender's own, or one that Arbor generates. The one before is valid for `overlap` more, if it can be
    opened.

    Raises Invalid, NotFound.
    """
    hook = lock_hook(hook_id)
    new = _new_secret(hook, secret)
    rotate_secret(hook, new=new, overlap=overlap)
    _audit(hook, actor, f"rotated the secret of the hook {hook.name}")
    return HookWithSecret(hook=hook, secret=new)


@transaction.atomic
def delete_hook(*, hook_id: UUID, actor: str) -> Hook:
    """Delete a hook with the log of its deliveries; what the agent perceived stays. Raises NotFound."""
    hook = lock_hook(hook_id)
    Hook.objects.filter(id=hook_id).delete()
    _audit(hook, actor, f"deleted the hook {hook.name}")
    return hook


def hook_by_name(name: str) -> Hook:
    """Find the current tenant's hook by name; raises NotFound with the names that exist."""
    return find_by_name(
        Hook.objects.select_related("agent", "tenant"),
        name,
        noun="hook",
        advice="create one with `arbor contact hook create`",
    )


def try_mapping(*, mapping: Mapping[str, Any], sample: str) -> HookMessage:
    """Return the message that a mapping would give for a sample of a body; nothing is stored. Raises Invalid."""
    return HookMapping.of(mapping).message(parse_body(sample.encode("utf-8", errors="replace")))


def lock_hook(hook_id: UUID) -> Hook:
    """Lock a hook of the current tenant. Raises NotFound."""
    rows = Hook.objects.select_related("agent").select_for_update(of=("self",), no_key=True)
    hook: Hook | None = rows.filter(id=hook_id).first()
    if hook is None:
        raise NotFound(f"there is no hook {hook_id} in this tenant")
    return hook


def _new_secret(hook: Hook, given: str) -> str:
    """Return the secret that the sender gave, checked, or a generated one. Raises Invalid."""
    given = given.strip()
    if not given:
        return new_standard_secret()
    check_secret(given, kind=HookKind(hook.kind), header=hook.signature_header)
    return given


def _valid_header(new: NewHook) -> str:
    header = new.signature_header.strip()
    if header and new.kind != HookKind.JSON:
        raise Invalid(
            "only a hook of the kind json has a header of its own; GitHub signs in X-Hub-Signature-256"
        )
    check_header(header)
    return header


def _valid_mapping(kind: HookKind, mapping: Mapping[str, Any]) -> dict[str, str]:
    if kind is HookKind.GITHUB:
        if mapping:
            raise Invalid("a hook of the kind github has texts of its own; only the kind json has a mapping")
        return {}
    return HookMapping.of(mapping).as_json()


def _valid_urgency(urgent_from: float | None) -> float | None:
    if urgent_from is not None and not 0 <= urgent_from <= 1:
        raise Invalid(f"the importance from which a delivery is urgent is 0 to 1, or none, got {urgent_from}")
    return urgent_from


def _audit(hook: Hook, actor: str, message: str) -> None:
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=hook.agent_id,
        message=message,
        detail={"hook": hook.name, "kind": hook.kind, "events": hook.events, "active": hook.active},
    )
