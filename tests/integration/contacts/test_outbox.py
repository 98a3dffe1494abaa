"""Routes of messages: the agent's channels, its tenant's, the inbox, and agents named in public."""

from __future__ import annotations

import pytest
from django.utils import timezone

from apps.agents.models import Agent, AgentKey, HeartbeatSchedule, Percept, PerceptKind, Trigger
from apps.agents.services.sealed_percepts import open_percepts
from apps.contacts.services.channels import MAX_CHANNELS
from apps.heartbeats.services.situations.situation import load_situation
from apps.queues import TaskMessage
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.agents.keys import KeyPurpose
from arbor.agents.lifecycle import AgentStatus
from arbor.contacts.values import Audience, ChannelKind, DeliveryStatus
from arbor.errors import LimitReached, NotFound
from tests.integration.contacts.conftest import make_agent, open_channel, run_workers, write_message
from tests.support.rows import reload


def test_a_message_without_a_channel_is_delivered_to_the_inbox(
    agent: Agent, messages: list[TaskMessage]
) -> None:
    (message,) = write_message(agent)
    assert (message.kind, message.status) == (ChannelKind.INBOX, DeliveryStatus.SENT)
    assert reload(message).sent_at is not None
    assert messages == []


def test_an_agents_own_channels_go_before_its_tenants(agent: Agent, tenant: Tenant) -> None:
    open_channel(agent, ChannelKind.EMAIL, "all@example.org")
    other = make_agent(tenant, "Vega")
    open_channel(agent, ChannelKind.EMAIL, "ada@example.org", agent_id=agent.id)
    open_channel(agent, ChannelKind.INBOX, "", agent_id=agent.id, name="inbox, too")
    assert {(row.kind, row.target) for row in write_message(agent)} == {
        ("email", "ada@example.org"),
        ("inbox", ""),
    }
    assert [row.target for row in write_message(other)] == ["all@example.org"]
    assert [row.kind for row in write_message(agent, audience=Audience.PUBLIC)] == ["inbox"]


def test_a_platform_is_the_name_of_a_channel(agent: Agent) -> None:
    for name in ("Blog", "Forum"):
        open_channel(agent, ChannelKind.EMAIL, f"{name}@example.org", audience=Audience.PUBLIC, name=name)
    (message,) = write_message(agent, audience=Audience.PUBLIC, platform="blog")
    assert message.target == "Blog@example.org"
    with pytest.raises(NotFound, match="there is no channel 'Twitter' for this; there is: Blog, Forum"):
        write_message(agent, audience=Audience.PUBLIC, platform="Twitter")


def test_the_channels_for_an_audience_are_limited(agent: Agent) -> None:
    for number in range(MAX_CHANNELS):
        open_channel(agent, ChannelKind.INBOX, "", name=f"inbox {number}")
    with pytest.raises(LimitReached, match="at most 50 channels for the audience user"):
        open_channel(agent, ChannelKind.INBOX, "", name="one more")
    open_channel(agent, ChannelKind.INBOX, "", audience=Audience.PUBLIC, name="public")
    open_channel(agent, ChannelKind.INBOX, "", agent_id=agent.id, name="her own")


def test_a_mention_in_public_reaches_each_named_agent_once(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, messages: list[TaskMessage]
) -> None:
    peer, stranger = make_agent(tenant, "Old Tom"), make_agent(other_tenant, "Vega")
    rows = write_message(agent, "@old tom, @Ada and @Vega: the river froze.", audience=Audience.PUBLIC)
    assert [(row.kind, row.target) for row in rows] == [("inbox", ""), ("peer", str(peer.id))]
    messages *= 2
    assert run_workers(messages) == [True, False]
    with tenant_transaction(tenant.id):
        percept = Percept.objects.get(agent=peer)
        assert (percept.kind, percept.peer_id, percept.urgent) == (PerceptKind.PEER_MESSAGE, agent.id, True)
        columns = load_situation(peer.id)
        (opened,), _ = open_percepts(columns["percepts"], receiver=columns["public_id"])
        assert percept.content == ""
        assert opened["content"] == "Ada wrote in public: @old tom, @Ada and @Vega: the river froze."
        schedule = HeartbeatSchedule.objects.get(agent=peer)
        assert schedule.next_trigger == Trigger.EVENT
        assert schedule.next_due_at <= timezone.now()
        assert not Percept.objects.filter(agent=agent).exists()
    with tenant_transaction(other_tenant.id):
        assert not Percept.objects.filter(agent=stranger).exists()


@pytest.mark.parametrize("status", [AgentStatus.STOPPED, AgentStatus.CREATED])
def test_a_mention_of_an_agent_that_does_not_run_reaches_nobody(
    status: AgentStatus, agent: Agent, tenant: Tenant
) -> None:
    peer, _ = make_agent(tenant, "Old Tom"), make_agent(tenant, "Old")
    with tenant_transaction(tenant.id):
        Agent.objects.filter(id=peer.id).update(status=status)
    assert [row.kind for row in write_message(agent, "@Old Tom: it froze.", audience=Audience.PUBLIC)] == [
        ChannelKind.INBOX
    ]


def test_an_agent_that_names_itself_reaches_only_its_namesake(agent: Agent, tenant: Tenant) -> None:
    writer, text = make_agent(tenant, "Ada Lou"), "@Ada Lou wrote this."
    assert [row.target for row in write_message(writer, text, audience=Audience.PUBLIC)] == [""]
    namesake = make_agent(tenant, "ADA LOU")
    rows = write_message(writer, text, audience=Audience.PUBLIC)
    assert [row.target for row in rows] == ["", str(namesake.id)]


def test_a_public_message_to_an_agent_stopped_meanwhile_fails(
    agent: Agent, tenant: Tenant, messages: list[TaskMessage]
) -> None:
    peer = make_agent(tenant, "Old Tom")
    *_, message = write_message(agent, "@old tom: the river froze.", audience=Audience.PUBLIC)
    with tenant_transaction(tenant.id):
        Agent.objects.filter(id=peer.id).update(status=AgentStatus.STOPPED)
    run_workers(messages)
    current = reload(message)
    assert current.status == DeliveryStatus.FAILED
    assert current.last_error == "the agent that it names is stopped"
    with tenant_transaction(tenant.id):
        assert not Percept.objects.filter(agent=peer).exists()


def test_a_public_message_that_cannot_be_signed_fails(
    agent: Agent, tenant: Tenant, messages: list[TaskMessage]
) -> None:
    peer = make_agent(tenant, "Old Tom")
    *_, message = write_message(agent, "@old tom: the river froze.", audience=Audience.PUBLIC)
    with tenant_transaction(tenant.id):
        foreign = AgentKey.objects.get(agent=peer, purpose=KeyPurpose.SIGNING).sealed_private_key
        AgentKey.objects.filter(agent=agent, purpose=KeyPurpose.SIGNING).update(sealed_private_key=foreign)
    run_workers(messages)
    current = reload(message)
    assert current.status == DeliveryStatus.FAILED
    assert "the sealed key of" in current.last_error
    with tenant_transaction(tenant.id):
        assert not Percept.objects.filter(agent=peer).exists()


def test_a_mention_in_a_private_message_reaches_nobody(
    agent: Agent, tenant: Tenant, messages: list[TaskMessage]
) -> None:
    make_agent(tenant, "Vega")
    assert [row.kind for row in write_message(agent, "@Vega is unwell, I think.")] == [ChannelKind.INBOX]
