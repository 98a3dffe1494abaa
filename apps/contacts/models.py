"""Channels, webhooks, hooks with their deliveries, outbox messages and conversations."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from apps.agents.models import Agent
from apps.tenants.fields import OnDelete, TenantForeignKey, TenantOneToOne, choices_of
from apps.tenants.models import TenantModel, TenantRow
from arbor.contacts.hooks import HookDeliveryStatus, HookKind, HookMapping, hook_key
from arbor.contacts.values import Audience, ChannelKind, DeliveryStatus, Speaker
from arbor.quotations import counted

#: The characters of the last answer to a message that its row stores.
ANSWER_LENGTH = 200


class Channel(TenantRow):
    """A delivery route for messages of a tenant's agents."""

    #: The agent that uses the channel; empty: all agents of the tenant without a channel of their own for this audience.
    agent = TenantForeignKey(Agent, null=True, blank=True, related_name="channels")
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=8, choices=choices_of(ChannelKind))
    audience = models.CharField(max_length=8, choices=choices_of(Audience))
    #: An e-mail address or a URL; empty for the inbox.
    target = models.CharField(max_length=500, blank=True)
    #: The key that signs a webhook's requests, sealed under master key k: {v, k, ct, iv, tag}.
    sealed_secret = models.JSONField(default=dict)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="contacts_channel_name")]

    def __str__(self) -> str:
        return self.name


class SignalWebhook(TenantRow):
    """An address that gets the signals of a tenant by signed requests, in order."""

    #: The sweep finds and leases webhooks in all tenants.
    ops_privileges: ClassVar[str] = "SELECT, UPDATE (lease, due_at)"

    name = models.CharField(max_length=60)
    url = models.CharField(max_length=500)
    #: Names of signals, or beginnings of names (`memory.goal_*`); empty: all signals.
    signals = models.JSONField(default=list)
    #: The agent whose signals are sent; empty: those of all agents.
    agent = TenantForeignKey(Agent, null=True, blank=True, related_name="+")
    #: The secret that signs the requests and, after a line break, the one before it, sealed under master key k: {v, k, ct, iv, tag}.
    sealed_secret = models.JSONField(default=dict)
    #: Until when the secret before signs the requests too.
    previous_until = models.DateTimeField(null=True)
    active = models.BooleanField(default=True)
    #: The `arbor.signals.Cursor` after the last signal that the receiver confirmed.
    position = models.CharField(max_length=60)
    #: The cursor of the last signal in the failed request, so that the request is repeated unchanged.
    failed_end = models.CharField(max_length=60, blank=True)
    #: The number of failed requests since the last confirmed one, and the time of the first of these failures.
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)
    delivered_at = models.DateTimeField(null=True)
    #: The time of the next request, or the end of the worker's lease.
    due_at = models.DateTimeField(default=timezone.now)
    #: The number of the lease, which fences writes of an earlier worker.
    lease = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "webhook"
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="contacts_signalwebhook_name")]
        indexes = [models.Index(fields=["tenant", "agent"], name="contacts_webhook_agent")]

    def __str__(self) -> str:
        return self.name


class Hook(TenantRow):
    """An address at which another system posts signed requests; each becomes a percept of the hook's agent."""

    name = models.CharField(max_length=60)
    agent = TenantForeignKey(Agent, related_name="hooks")
    kind = models.CharField(max_length=8, choices=choices_of(HookKind))
    #: The header with the signature of a `json` hook; empty: the headers of Standard Webhooks.
    signature_header = models.CharField(max_length=60, blank=True)
    #: The fields of `HookMapping`; of a `json` hook only.
    mapping = models.JSONField(default=dict)
    #: Names of events, or beginnings up to a full stop; empty: all events.
    events = models.JSONField(default=list)
    #: The importance, 0 to 1, from which a delivery brings the next heartbeat forward; empty: none does.
    urgent_from = models.FloatField(null=True, blank=True)
    #: The secret and, after a line break, the one before it, sealed under master key k: {v, k, ct, iv, tag}.
    sealed_secret = models.JSONField(default=dict)
    #: Until when the secret before is valid too.
    previous_until = models.DateTimeField(null=True)
    active = models.BooleanField(default=True)
    #: The latest stored refusal of a delivery: its time and its reason. Refusals in quick succession are not all stored.
    refused_at = models.DateTimeField(null=True)
    last_refusal = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="contacts_hook_name")]
        indexes = [models.Index(fields=["tenant", "agent"], name="contacts_hook_by_agent")]

    def __str__(self) -> str:
        return self.name

    @property
    def key(self) -> str:
        """Return the key in the hook's address."""
        return hook_key(self.tenant_id, self.id)

    @property
    def rules(self) -> HookMapping:
        """Return the mapping."""
        return HookMapping.of(self.mapping)


class HookDelivery(TenantRow):
    """A request at a hook, or of a webhook, with its result. It is deleted by age."""

    #: The sweep finds webhooks with deliveries to send again.
    ops_privileges: ClassVar[str] = "SELECT"

    #: The hook or the webhook: exactly one of them is set.
    hook = TenantForeignKey(Hook, null=True, related_name="deliveries")
    webhook = TenantForeignKey(SignalWebhook, null=True, related_name="deliveries")
    #: Identifies the request, so that it counts once: a signed id, a hash of the body, or the cursors of a webhook's signals.
    once_key = models.CharField(max_length=220)
    #: The sender's id of the request, by which the logs of both sides name it.
    delivery_id = models.CharField(max_length=200, blank=True)
    #: The event, or the names of a webhook's signals.
    event = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=10, choices=choices_of(HookDeliveryStatus))
    attempts = models.PositiveIntegerField(default=1)
    error = models.TextField(blank=True)
    #: The percept that it became; a percept is deleted with its heartbeat.
    percept_id = models.UUIDField(null=True)
    #: The beginning of a body that a hook received.
    body = models.TextField(blank=True)
    #: The cursor before the first signal of a webhook's request, and that of the last one.
    begin = models.CharField(max_length=60, blank=True)
    end = models.CharField(max_length=60, blank=True)
    at = models.DateTimeField(default=timezone.now)
    #: The time of the last attempt.
    tried_at = models.DateTimeField(default=timezone.now)

    class Meta(TenantModel.Meta):
        verbose_name = "delivery"
        verbose_name_plural = "deliveries"
        ordering = ["-at"]
        indexes = [
            models.Index(fields=["tenant", "-at"], name="contacts_delivery_by_time"),
            models.Index(fields=["tenant", "hook", "-at"], name="contacts_delivery_by_hook"),
            models.Index(fields=["tenant", "webhook", "-at"], name="contacts_delivery_by_webhook"),
            models.Index(
                fields=["tenant", "webhook"],
                name="contacts_delivery_resent",
                condition=models.Q(status="resending"),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "hook", "once_key"], name="contacts_delivery_hook_once"
            ),
            models.UniqueConstraint(
                fields=["tenant", "webhook", "once_key"], name="contacts_delivery_webhook_once"
            ),
            models.CheckConstraint(
                condition=models.Q(hook__isnull=True) ^ models.Q(webhook__isnull=True),
                name="contacts_delivery_of_one",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event or self.delivery_id or self.once_key[:20]}: {self.status}"


class OutboxMessage(TenantRow):
    """A message that an agent decided to send, stored in the transaction of the decision and delivered afterwards."""

    #: The sweep finds due messages in all tenants.
    ops_privileges: ClassVar[str] = "SELECT, UPDATE"

    agent = TenantForeignKey(Agent, related_name="outbox")
    #: The heartbeat that decided to send the message.
    heartbeat_id = models.UUIDField(null=True)
    channel = TenantForeignKey(Channel, deleting=OnDelete.SET_NULL, null=True, related_name="+")
    #: Copies of the channel's values at that time; a message to the inbox or to a peer needs no channel.
    kind = models.CharField(max_length=8, choices=choices_of(ChannelKind))
    audience = models.CharField(max_length=8, choices=choices_of(Audience))
    target = models.CharField(max_length=500, blank=True)
    subject = models.CharField(max_length=300, blank=True)
    content = models.TextField()
    #: Identifies the decision, so that executing it twice creates one message; also sent to webhooks.
    idempotency_key = models.CharField(max_length=100)
    status = models.CharField(
        max_length=9, choices=choices_of(DeliveryStatus), default=DeliveryStatus.PENDING
    )
    #: Attempts so far; never reset, because the number identifies a worker's attempt.
    attempts = models.PositiveSmallIntegerField(default=0)
    #: Attempts before a person's last retry; only later ones count against the limit.
    tries_before = models.PositiveSmallIntegerField(default=0, db_default=0)
    #: The time of the next attempt.
    due_at = models.DateTimeField()
    #: The lease of the worker that delivers the message, or of the published hint of a pending message.
    lease_until = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)
    #: The time of the decision, by the heartbeat's clock.
    created_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True)
    #: When a person read it in the inbox.
    read_at = models.DateTimeField(null=True)
    #: Answers of people to it, and the beginning of the last one.
    answers = models.PositiveIntegerField(default=0, db_default=0)
    last_answer = models.CharField(max_length=ANSWER_LENGTH, blank=True, default="", db_default="")

    class Meta(TenantModel.Meta):
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["tenant", "agent", "-created_at"], name="contacts_outbox_by_agent"),
            models.Index(
                fields=["due_at"],
                name="contacts_outbox_due",
                condition=models.Q(status__in=["pending", "sending"]),
            ),
            models.Index(
                fields=["tenant", "-created_at"],
                name="contacts_inbox_unread",
                condition=models.Q(kind="inbox", read_at__isnull=True),
            ),
            models.Index(
                fields=["tenant", "-created_at"],
                name="contacts_outbox_failed",
                condition=models.Q(status="failed"),
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "idempotency_key"], name="contacts_outbox_once"),
        ]

    def __str__(self) -> str:
        return self.subject or self.content[:60]

    @property
    def tries(self) -> int:
        """Return the number of attempts since a person's last retry, or since the beginning."""
        return int(self.attempts - self.tries_before)


class ChatSession(TenantRow):
    """A conversation between a person and an agent. The agent's timer pauses while it is open."""

    agent = TenantForeignKey(Agent, related_name="conversations")
    #: The person: `user:NAME`, `cli:NAME`, `mcp:NAME`, `api:NAME` as a program names its user, `token:NAME` without such a name.
    person = models.CharField(max_length=200)
    #: Distinguishes conversations of one person that a program has open at once; empty: the person's only one.
    client_key = models.CharField(max_length=100, blank=True, default="", db_default="")
    started_at = models.DateTimeField()
    last_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    #: The significance, 0 to 1; set at the end.
    significance = models.FloatField(null=True)

    class Meta(TenantModel.Meta):
        verbose_name = "conversation"
        ordering = ["-started_at"]
        indexes = [
            models.Index(fields=["tenant", "agent", "-started_at"], name="contacts_chat_by_agent"),
            models.Index(
                fields=["last_at"], name="contacts_chat_open", condition=models.Q(ended_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.person}, {self.started_at:%Y-%m-%d %H:%M} UTC"


class ChatMessage(TenantRow):
    """One turn of a conversation."""

    session = TenantForeignKey(ChatSession, related_name="messages")
    speaker = models.CharField(max_length=8, choices=choices_of(Speaker))
    content = models.TextField()
    #: For the agent's turns: `provider/model`.
    model = models.CharField(max_length=200, blank=True)
    #: For the agent's turns: the answered turn (`to`), the thinking, the recalled memories [{id, score}]. For a person's: the contact
    #: before it, and what the person's program sent beside the text. For both: boundary matches.
    detail = models.JSONField(default=dict)
    #: The reason why there is no reply.
    error = models.TextField(blank=True)
    #: Distinguishes messages to which a client gave ids, so that a repeated request finds its turn; empty: it has none.
    client_digest = models.CharField(max_length=64, null=True, editable=False)
    at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        verbose_name = "turn of a conversation"
        verbose_name_plural = "turns of conversations"
        ordering = ["at"]
        indexes = [models.Index(fields=["tenant", "session", "at"], name="contacts_message_by_chat")]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "client_digest"],
                condition=models.Q(client_digest__isnull=False),
                name="contacts_message_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.speaker}: {self.content[:60]}"


class PartialReply(TenantModel):
    """The sentences of a reply that may be shown while the model still writes; deleted when the conversation ends."""

    #: The person's turn.
    turn = TenantOneToOne(ChatMessage, primary_key=True, related_name="partial_reply")
    #: The attempt of the external call that writes the reply; the sentences of an earlier one are void.
    attempt = models.PositiveIntegerField()
    #: Checked against the agent's boundaries, in order; each begins with the white space before it.
    sentences = models.JSONField(default=list)

    class Meta(TenantModel.Meta):
        verbose_name_plural = "partial replies"

    def __str__(self) -> str:
        return f"{counted(len(self.sentences), 'sentence')} of attempt {self.attempt}"
