"""Hooks, at which other systems post what an agent should perceive, and the deliveries at hooks and of webhooks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from apps.agents.models import Agent
from apps.api.authentication import OPERATE
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, row_of_tenant
from apps.api.scope import answers_secret
from apps.contacts.models import Hook, HookDelivery
from apps.contacts.services.hooks import (
    NAME_LENGTH,
    HookWithSecret,
    NewHook,
    change_hook,
    create_hook,
    delete_hook,
    lock_hook,
    rotate_hook_secret,
    switch_hook,
    try_mapping,
)
from apps.contacts.services.signing_secrets import LONGEST_OVERLAP, OVERLAP
from apps.contacts.services.webhook_deliveries import resend_delivery
from arbor.contacts.hook_signatures import MAX_SECRET
from arbor.contacts.hook_templates import TEMPLATE_LENGTH
from arbor.contacts.hooks import (
    HOOKS_PATH,
    MAX_EVENTS,
    HookDeliveryStatus,
    HookKind,
    HookMapping,
)

router = Router()

#: Seconds for which the previous secret is valid too: by default, and at most.
_OVERLAP_S, _LONGEST_OVERLAP_S = int(OVERLAP.total_seconds()), int(LONGEST_OVERLAP.total_seconds())

type Template = Annotated[str, Field(max_length=TEMPLATE_LENGTH)]
type EventName = Annotated[str, Field(min_length=1, max_length=100)]
type Urgency = Annotated[float, Field(ge=0, le=1)] | None


class MappingInput(Input):
    """Templates that turn a JSON body into a message: texts with paths of the body, {a.b} or {/a/0}."""

    event: Template = Field(
        default=HookMapping().event, description="The kind of event, by which events are chosen."
    )
    title: Template = Field(default="", examples=["{data.title}"])
    text: Template = Field(default=HookMapping().text, description="{} is the whole body.")
    sender: Template = ""
    importance: Template = Field(default="", description="0 to 1, or low, normal, high, critical.")


class HookResource(Schema):
    """A hook."""

    id: UUID
    name: str
    agent_id: UUID
    kind: HookKind
    path: str = Field(description="The path on the API's address to which deliveries are posted.")
    signature_header: str = Field(description="Of a json hook; empty: the headers of Standard Webhooks.")
    mapping: dict[str, str] = Field(description="Empty for GitHub, whose events have texts.")
    events: list[str] = Field(description="Names of events; empty: all events.")
    urgent_from: float | None = Field(
        description="The importance from which a delivery starts the next heartbeat at once; null: none does."
    )
    active: bool = Field(description="False: deliveries are refused.")
    previous_until: datetime | None = Field(description="Until when the secret before is valid too.")
    refused_at: datetime | None = Field(description="The time of a delivery that was refused.")
    last_refusal: str = Field(description="The reason of that refusal.")
    created_at: datetime

    @classmethod
    def of(cls, hook: Hook) -> HookResource:
        """Return the resource of a row."""
        shown = {name: getattr(hook, name) for name in cls.model_fields if name != "path"}
        return cls(**shown, path=f"{HOOKS_PATH}{hook.key}")


class HookSecretResource(Schema):
    """A hook and its new secret."""

    hook: HookResource
    secret: str = Field(description="The secret by which the sender signs, shown once.")

    @classmethod
    def of(cls, created: HookWithSecret) -> HookSecretResource:
        """Return the resource of a hook with a new secret."""
        return cls(hook=HookResource.of(created.hook), secret=created.secret)


class HookInput(Input):
    """A new hook."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]
    agent_id: UUID
    kind: HookKind = HookKind.JSON
    signature_header: Annotated[str, Field(max_length=60)] = ""
    mapping: MappingInput | None = Field(default=None, description="Of a json hook only.")
    events: list[EventName] = Field(default=[], max_length=MAX_EVENTS, examples=[["issues.opened", "push"]])
    urgent_from: Urgency = None
    secret: Annotated[str, Field(max_length=MAX_SECRET)] = Field(
        default="", description="The secret that the sender generated; empty: Arbor generates one."
    )


class HookPatch(Input):
    """The changes of a hook; fields that are left out stay."""

    mapping: MappingInput | None = None
    events: list[EventName] | None = Field(default=None, max_length=MAX_EVENTS)
    urgent_from: Urgency = None


class HookSecretInput(Input):
    """A request for a new secret."""

    secret: Annotated[str, Field(max_length=MAX_SECRET)] = Field(
        default="", description="The secret that the sender generated; empty: Arbor generates one."
    )
    overlap_s: Annotated[int, Field(ge=0, le=_LONGEST_OVERLAP_S)] = Field(
        default=_OVERLAP_S, description="The seconds for which the secret before is valid too."
    )


class TrialInput(Input):
    """A mapping, and a sample of a body."""

    mapping: MappingInput
    sample: Annotated[str, Field(max_length=100_000)] = Field(description="The body, as JSON in a string.")


class TrialResource(Schema):
    """The message that a body would give."""

    content: str = Field(description="The text that the agent would perceive.")
    event: str
    sender: str
    importance: float
    warnings: list[str] = Field(
        description="Paths that the body does not have, and an importance that cannot be read."
    )


class DeliveryResource(Schema):
    """A request at a hook, or of a webhook."""

    id: UUID
    hook_id: UUID | None
    webhook_id: UUID | None
    event: str = Field(description="The event, or the names of a webhook's signals.")
    status: HookDeliveryStatus
    attempts: int
    error: str
    delivery_id: str = Field(description="The sender's id of the request.")
    percept_id: UUID | None = Field(description="The percept that it became.")
    at: datetime
    tried_at: datetime = Field(description="The time of the last attempt.")


class DeliveryQuery(Schema):
    """The deliveries that are wanted."""

    hook_id: UUID | None = None
    webhook_id: UUID | None = None
    direction: Literal["in", "out"] | None = Field(
        default=None, description="At hooks, or of webhooks; null: both."
    )
    status: HookDeliveryStatus | None = None


@router.get("/hooks", response=ListPage[HookResource], summary="List hooks")
def list_hooks(request: HttpRequest, page: Paging) -> ListPage[HookResource]:
    """List the hooks of the tenant by name."""
    return page_of(Hook.objects.defer("sealed_secret"), page, order="name", to_resource=HookResource.of)


@router.post("/hooks", response={201: HookSecretResource}, auth=OPERATE, summary="Create a hook")
@answers_secret
def add_hook(request: HttpRequest, payload: HookInput) -> Status[HookSecretResource]:
    """Create a hook of an agent. The secret by which its sender signs is shown once."""
    row_of_tenant(Agent, payload.agent_id)
    fields = payload.model_dump(exclude={"mapping"})
    mapping = payload.mapping.model_dump() if payload.mapping is not None else {}
    created = create_hook(NewHook(**fields, mapping=mapping), actor=access_of(request).actor)
    return Status(201, HookSecretResource.of(created))


@router.post("/try-hook-mapping", response=TrialResource, summary="Try a mapping")
def try_hook_mapping(request: HttpRequest, trial: TrialInput) -> TrialResource:
    """Show the message that a mapping would give for a body. Nothing is stored."""
    return TrialResource.model_validate(try_mapping(mapping=trial.mapping.model_dump(), sample=trial.sample))


@router.get("/hooks/{uuid:hook_id}", response=HookResource, summary="Show a hook")
def show_hook(request: HttpRequest, hook_id: UUID) -> HookResource:
    """Show a hook, with the latest refusal."""
    return HookResource.of(row_of_tenant(Hook, hook_id))


@router.patch("/hooks/{uuid:hook_id}", response=HookResource, auth=OPERATE, summary="Change a hook")
def patch_hook(request: HttpRequest, hook_id: UUID, change: HookPatch) -> HookResource:
    """Change the mapping, the events and the urgency of a hook. Fields that are left out stay."""
    # Locked before it is read: parts that are left out are those of the change before.
    hook = lock_hook(hook_id)
    given = change.mapping.model_dump(exclude_unset=True) if change.mapping is not None else None
    changed = change_hook(
        hook_id=hook_id,
        actor=access_of(request).actor,
        mapping={**hook.mapping, **given} if given is not None else None,
        events=change.events,
        urgent_from=change.urgent_from if "urgent_from" in change.model_fields_set else hook.urgent_from,
    )
    return HookResource.of(changed)


@router.post(
    "/hooks/{uuid:hook_id}/secret",
    response=HookSecretResource,
    auth=OPERATE,
    summary="Rotate a hook's secret",
)
@answers_secret
def rotate_secret(request: HttpRequest, hook_id: UUID, payload: HookSecretInput) -> HookSecretResource:
    """Give a hook a new secret, which is shown once; the previous secret, if it can be opened, is valid for `overlap_s` more seconds."""
    created = rotate_hook_secret(
        hook_id=hook_id,
        actor=access_of(request).actor,
        secret=payload.secret,
        overlap=timedelta(seconds=payload.overlap_s),
    )
    return HookSecretResource.of(created)


@router.post(
    "/hooks/{uuid:hook_id}/{verb}", response=HookResource, auth=OPERATE, summary="Switch a hook on or off"
)
def change_state(request: HttpRequest, hook_id: UUID, verb: Literal["enable", "disable"]) -> HookResource:
    """Switch a hook on or off. Deliveries at a hook that is off are refused, so that their senders repeat them."""
    return HookResource.of(
        switch_hook(hook_id=hook_id, active=verb == "enable", actor=access_of(request).actor)
    )


@router.delete("/hooks/{uuid:hook_id}", response=HookResource, auth=OPERATE, summary="Delete a hook")
def remove_hook(request: HttpRequest, hook_id: UUID) -> HookResource:
    """Delete a hook with the log of its deliveries."""
    return HookResource.of(delete_hook(hook_id=hook_id, actor=access_of(request).actor))


@router.get("/deliveries", response=ListPage[DeliveryResource], summary="List deliveries")
def list_deliveries(
    request: HttpRequest, wanted: Query[DeliveryQuery], page: Paging
) -> ListPage[DeliveryResource]:
    """List deliveries at hooks and of webhooks, the latest first."""
    rows = HookDelivery.objects.defer("body")
    named = {"hook_id": wanted.hook_id, "webhook_id": wanted.webhook_id, "status": wanted.status}
    rows = rows.filter(**{name: value for name, value in named.items() if value is not None})
    if wanted.direction is not None:
        rows = rows.filter(hook__isnull=wanted.direction == "out")
    return page_of(rows, page, order="-at", to_resource=DeliveryResource.model_validate)


@router.post(
    "/deliveries/{uuid:delivery_id}/resend",
    response=DeliveryResource,
    auth=OPERATE,
    summary="Send a delivery again",
)
def resend(request: HttpRequest, delivery_id: UUID) -> DeliveryResource:
    """Send a delivery of a webhook again within seconds, with the same id and the same signals."""
    return DeliveryResource.model_validate(
        resend_delivery(delivery_id=delivery_id, actor=access_of(request).actor)
    )
