"""Webhooks, which get signals by signed requests."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.agents.models import Agent
from apps.api.authentication import OPERATE
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, row_of_tenant
from apps.api.scope import answers_secret
from apps.contacts.models import SignalWebhook
from apps.contacts.services.signal_webhooks import (
    MAX_NAMES,
    NAME_LENGTH,
    URL_LENGTH,
    create_webhook,
    delete_webhook,
    rotate_webhook_secret,
    switch_webhook,
)
from arbor.adapters.webhook import redact_url

router = Router()


class WebhookResource(Schema):
    """A webhook and the state of its delivery."""

    id: UUID
    name: str
    url: str = Field(description="The host only.")
    signals: list[str] = Field(description="Names of signals, or beginnings of names; empty: all signals.")
    agent_id: UUID | None = Field(description="Null: of all agents.")
    active: bool = Field(description="False: paused, by a person or after a day of failures.")
    failures: int = Field(description="The failed requests since the last confirmed one.")
    failing_since: datetime | None
    last_error: str
    delivered_at: datetime | None = Field(description="The time of the last confirmed request.")
    position: str = Field(description="The cursor after the last confirmed signal.")
    created_at: datetime

    @classmethod
    def of(cls, webhook: SignalWebhook) -> WebhookResource:
        """Return the resource of a row."""
        shown = {name: getattr(webhook, name) for name in cls.model_fields if name != "url"}
        return cls(**shown, url=redact_url(webhook.url))


class NewWebhookResource(Schema):
    """A webhook and its new secret."""

    webhook: WebhookResource
    secret: str = Field(description="The secret that signs its requests (Standard Webhooks), shown once.")


class WebhookInput(Input):
    """A new webhook."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]
    url: Annotated[str, Field(min_length=1, max_length=URL_LENGTH, examples=["https://example.org/signals"])]
    signals: list[Annotated[str, Field(min_length=1, max_length=80)]] = Field(
        default=[], max_length=MAX_NAMES, examples=[["memory.goal_*"]]
    )
    agent_id: UUID | None = None


@router.get("/webhooks", response=ListPage[WebhookResource], summary="List webhooks")
def list_webhooks(request: HttpRequest, page: Paging) -> ListPage[WebhookResource]:
    """List the webhooks of the tenant by name."""
    return page_of(
        SignalWebhook.objects.defer("sealed_secret"), page, order="name", to_resource=WebhookResource.of
    )


@router.post("/webhooks", response={201: NewWebhookResource}, auth=OPERATE, summary="Create a webhook")
@answers_secret
def add_webhook(request: HttpRequest, payload: WebhookInput) -> Status[NewWebhookResource]:
    """Create a webhook for signals from now on. The secret that signs its requests is shown once."""
    if payload.agent_id is not None:
        row_of_tenant(Agent, payload.agent_id)
    created = create_webhook(**payload.model_dump(), actor=access_of(request).actor)
    return Status(201, NewWebhookResource(webhook=WebhookResource.of(created.webhook), secret=created.secret))


@router.get("/webhooks/{uuid:webhook_id}", response=WebhookResource, summary="Show a webhook")
def show_webhook(request: HttpRequest, webhook_id: UUID) -> WebhookResource:
    """Show a webhook and the state of its delivery."""
    return WebhookResource.of(row_of_tenant(SignalWebhook, webhook_id))


@router.post(
    "/webhooks/{uuid:webhook_id}/secret",
    response=NewWebhookResource,
    auth=OPERATE,
    summary="Rotate a webhook's secret",
)
@answers_secret
def rotate_secret(request: HttpRequest, webhook_id: UUID) -> NewWebhookResource:
    """Give a webhook a new secret, which is shown once. For a day, its requests are signed with the previous secret too, if it can be opened."""
    created = rotate_webhook_secret(webhook_id=webhook_id, actor=access_of(request).actor)
    return NewWebhookResource(webhook=WebhookResource.of(created.webhook), secret=created.secret)


@router.post(
    "/webhooks/{uuid:webhook_id}/{verb}",
    response=WebhookResource,
    auth=OPERATE,
    summary="Pause or resume a webhook",
)
def change_webhook(
    request: HttpRequest, webhook_id: UUID, verb: Literal["pause", "resume"]
) -> WebhookResource:
    """Pause a webhook, or resume it after the last confirmed signal."""
    return WebhookResource.of(
        switch_webhook(webhook_id=webhook_id, active=verb == "resume", actor=access_of(request).actor)
    )


@router.delete(
    "/webhooks/{uuid:webhook_id}", response=WebhookResource, auth=OPERATE, summary="Delete a webhook"
)
def remove_webhook(request: HttpRequest, webhook_id: UUID) -> WebhookResource:
    """Delete a webhook."""
    return WebhookResource.of(delete_webhook(webhook_id=webhook_id, actor=access_of(request).actor))
