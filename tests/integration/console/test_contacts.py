"""The inbox, the outbox and channels in the console, by role."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.agents.models import Percept, PerceptKind
from apps.audit.models import AuditAction, AuditEvent
from apps.console import badges
from apps.console.pages.contacts import MESSAGES_SHOWN
from apps.contacts.models import Channel, OutboxMessage
from apps.contacts.services import inbox
from apps.fleet.contact import QUOTED_LENGTH
from apps.queues import Task, captured
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import DeliveryStatus
from tests.factories.contacts import ChannelFactory, OutboxMessageFactory
from tests.support.console import World, page_of
from tests.support.rows import reload

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def message(world: World) -> OutboxMessage:
    """Return a message in the inbox, which nobody has read."""
    return store_message(world, subject="Ice", content=f"The river froze. {HOSTILE}")


def store_message(world: World, **values: Any) -> OutboxMessage:
    with tenant_transaction(world.tenant.id):
        message: OutboxMessage = OutboxMessageFactory.create(agent=world.agent, **values)
    return message


def act(client: Client, message: OutboxMessage, verb: str, **data: str) -> Any:
    return client.post(reverse("admin:message-act", args=[message.id]), {"act": verb, **data}, follow=True)


def text_of(client: Client, page: str) -> str:
    return str(client.get(page).content.decode())


def test_the_inbox_escapes_messages_and_counts_unread_ones(viewer: Client, message: OutboxMessage) -> None:
    text = text_of(viewer, reverse("admin:inbox"))
    assert "&lt;script&gt;alert(1)" in text
    assert HOSTILE not in text
    # The world has another unread message.
    assert "2 unread" in text
    assert str(message.id) in text
    assert reload(message).read_at is None


def badge_of(client: Client, page: str) -> str:
    items = client.get(page).context["sidebar_navigation"][0]["items"]
    return str(next(item["badge"] for item in items if item["title"] == "Conversations"))


def test_unread_messages_are_counted_in_the_navigation(
    viewer: Client, world: World, operator: Client
) -> None:
    first = store_message(world)
    page = reverse("admin:agents_agent_changelist")
    assert badge_of(viewer, page) == "2"
    act(operator, first, "read")
    assert badge_of(viewer, page) == "1"


def test_the_inbox_and_the_navigation_count_alike(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "COUNTED_AT_MOST", 2)
    monkeypatch.setattr(badges, "COUNTED_AT_MOST", 2)
    for _ in range(3):
        store_message(world)
    assert badge_of(viewer, reverse("admin:inbox")) == "2+"
    assert '<span class="ar-subtle ar-small" id="unread">2+ unread</span>' in text_of(
        viewer, reverse("admin:inbox")
    )


def test_the_inbox_is_filtered_by_unread_messages(
    viewer: Client, operator: Client, message: OutboxMessage
) -> None:
    act(operator, message, "read")
    assert reload(message).read_at is not None
    assert str(message.id) not in text_of(viewer, reverse("admin:inbox") + "?unread=1")


def test_a_long_inbox_is_paged(viewer: Client, world: World) -> None:
    for _ in range(MESSAGES_SHOWN + 2):
        store_message(world)
    first = text_of(viewer, reverse("admin:inbox"))
    assert first.count("data-message=") == MESSAGES_SHOWN
    older = viewer.get(reverse("admin:inbox")).context["page"].older
    rest = text_of(viewer, reverse("admin:inbox") + f"?before={older}")
    assert rest.count("data-message=") == 3
    assert (
        text_of(viewer, reverse("admin:inbox") + "?before=nonsense").count("data-message=") == MESSAGES_SHOWN
    )


def test_messages_of_one_time_are_all_in_the_pages_of_the_inbox(viewer: Client, world: World) -> None:
    now = timezone.now()
    stored = {str(store_message(world, created_at=now).id) for _ in range(MESSAGES_SHOWN + 2)}
    page = viewer.get(reverse("admin:inbox")).context["page"]
    rest = viewer.get(reverse("admin:inbox") + f"?before={page.older}").context["page"]
    shown = [str(row.id) for row in [*page.messages, *rest.messages]]
    assert stored <= set(shown)
    assert len(shown) == len(set(shown))


def test_another_tenants_inbox_is_not_shown(viewer: Client, world: World, other_world: World) -> None:
    assert "globex secret" not in text_of(viewer, reverse("admin:inbox"))


def test_a_member_of_no_tenant_has_no_inbox(root: Client) -> None:
    assert root.get(reverse("admin:inbox")).status_code == 403


def test_an_answer_quotes_the_message_and_reaches_its_agent(
    operator: Client, world: World, message: OutboxMessage
) -> None:
    with captured():
        page = act(operator, message, "answer", text="Wait for\r\nthe thaw.")
    assert "receives the answer at its next heartbeat" in page.content.decode()
    with tenant_transaction(world.tenant.id):
        percept = Percept.objects.get(detail__message=str(message.id))
    assert percept.kind == PerceptKind.USER_MESSAGE
    assert percept.content == f"> The river froze. {HOSTILE}\nWait for\nthe thaw."
    assert reload(message).read_at is not None
    long = store_message(world, content="ice " * 900)
    act(operator, long, "answer", text="So long!")
    with tenant_transaction(world.tenant.id):
        quote = Percept.objects.get(detail__message=str(long.id)).content.partition("\n")[0]
    assert len(quote) <= QUOTED_LENGTH + 2
    assert quote.endswith("…")


def test_an_empty_answer_is_refused(operator: Client, message: OutboxMessage) -> None:
    assert (
        "a message has 1 to 8,000 characters" in act(operator, message, "answer", text=" ").content.decode()
    )
    assert reload(message).read_at is None


def test_retry_and_withdrawal_of_a_message_are_audited(operator: Client, world: World) -> None:
    failed = store_message(
        world, kind="email", target="ann@example.org", status="failed", sent_at=None, last_error="dead"
    )
    assert "Try again" in text_of(operator, page_of(failed))
    with captured() as published:
        act(operator, failed, "retry")
    assert [hint.task for hint in published] == [Task.DELIVER]
    assert reload(failed).status == DeliveryStatus.PENDING
    assert "The last attempt failed." in text_of(operator, page_of(failed))
    act(operator, failed, "cancel")
    assert reload(failed).status == DeliveryStatus.CANCELLED
    assert "is cancelled and cannot become" in act(operator, failed, "retry").content.decode()
    with tenant_transaction(world.tenant.id):
        acts = AuditEvent.objects.filter(action=AuditAction.OPERATOR_ACT, detail__message=str(failed.id))
        assert acts.count() == 2


@pytest.mark.parametrize("verb", ["read", "answer", "retry", "cancel"])
def test_a_viewer_only_reads_messages(
    verb: str, viewer: Client, world: World, message: OutboxMessage
) -> None:
    assert act(viewer, message, verb, text="no").status_code == 403
    assert reload(message).read_at is None
    text = text_of(viewer, page_of(message))
    assert "Mark as read" not in text
    assert 'id="answer"' not in text


def test_a_message_of_another_tenant_is_not_found(operator: Client, world: World, other_world: World) -> None:
    theirs = store_message(other_world)
    assert act(operator, theirs, "read").status_code == 404
    assert act(operator, theirs, "sing").status_code == 404


def test_messages_that_did_not_arrive_are_an_alarm(viewer: Client, world: World) -> None:
    assert "1 message of agents did not arrive" in text_of(viewer, reverse("admin:index"))


def test_the_agents_page_shows_its_messages(viewer: Client, world: World) -> None:
    store_message(world, subject="Of ice and fords")
    assert "Of ice and fords" in text_of(viewer, world.agent_page)


def test_an_operator_adds_a_webhook_and_sees_its_secret_once(operator: Client, world: World) -> None:
    page = reverse("admin:contacts_channel_add")
    data = {
        "name": "ops",
        "kind": "webhook",
        "target": "https://example.org/hook",
        "audience": "user",
        "agent": "",
    }
    response = operator.post(page, data)
    secret = response.context["created"].secret
    assert secret in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    with tenant_transaction(world.tenant.id):
        channel = Channel.objects.get(name="ops")
    with CaptureQueriesContext(connection) as queries:
        for address in (reverse("admin:contacts_channel_changelist"), page_of(channel)):
            assert secret not in text_of(operator, address)
    assert not [query for query in queries.captured_queries if "sealed_secret" in query["sql"]]
    assert "there is a channel &#x27;ops&#x27; already" in operator.post(page, data).content.decode()
    refused = operator.post(page, {**data, "name": "x", "target": "http://example.org"})
    assert "begins with https://" in refused.content.decode()


def test_pages_show_only_the_host_of_a_webhook_url(operator: Client, world: World) -> None:
    secret = "https://example.org/s3cret-path?token=s3cret-token"
    with tenant_transaction(world.tenant.id):
        channel = ChannelFactory.create(tenant_id=world.tenant.id, agent=None, name="hook", target=secret)
    message = store_message(
        world, channel=channel, kind="webhook", target=secret, status="pending", sent_at=None
    )
    mail = store_message(world, kind="email", target="ann@example.org", status="pending", sent_at=None)
    lists = [reverse(f"admin:contacts_{kind}_changelist") for kind in ("channel", "outboxmessage")]
    for address in [*lists, page_of(channel), page_of(message)]:
        shown = text_of(operator, address)
        assert "https://example.org/…" in shown
        assert "s3cret" not in shown
    assert "ann@example.org" in text_of(operator, page_of(mail))
    assert "ann@example.org" in text_of(operator, lists[1])


def test_an_operator_disables_and_removes_a_channel(operator: Client, viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        channel = Channel.objects.get()
    address = reverse("admin:channel-act", args=[channel.id])
    assert viewer.post(address, {"act": "remove"}).status_code == 403
    operator.post(address, {"act": "disable"})
    with tenant_transaction(world.tenant.id):
        assert not Channel.objects.get().enabled
    operator.post(address, {"act": "remove"})
    with tenant_transaction(world.tenant.id):
        assert not Channel.objects.exists()
    assert viewer.get(reverse("admin:contacts_channel_add")).status_code == 403
