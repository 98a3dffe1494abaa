"""The commands about messages between agents and people: inbox, delivery channels, outbox and peers."""

from __future__ import annotations

import click

from arbor.contacts.values import Audience, ChannelKind, DeliveryStatus
from config.cli.kit.declarations import agent_command, argument, group, one_of, option, tenant_command

_KINDS = [kind for kind in ChannelKind if kind is not ChannelKind.PEER]


def _agent() -> click.Option:
    return option("--agent", metavar="NAME", help="Only this agent's.")


def _limit() -> click.Option:
    return option(
        "--limit",
        type=click.IntRange(1, 500),
        default=20,
        show_default=True,
        help="Maximum number of results.",
    )


_inbox = group(
    "inbox",
    "Read and answer agents' messages. ID is an id, or the last characters of one.",
    tenant_command(
        "list",
        "List the messages from agents, the latest first.",
        _agent(),
        option("--unread", is_flag=True, help="Only unread messages."),
        _limit(),
        run="contacts.inbox:list_inbox",
        examples=("arbor inbox list --unread",),
    ),
    tenant_command(
        "read",
        "Show a message and mark it as read.",
        argument("message_id", metavar="ID"),
        run="contacts.inbox:read",
        examples=("arbor inbox read 0c5512aa",),
    ),
    tenant_command(
        "answer",
        "Answer a message: its agent reads the answer at its next heartbeat, which starts at once.",
        argument("message_id", metavar="ID"),
        argument("text"),
        run="contacts.inbox:answer",
        examples=('arbor inbox answer 0c5512aa "Thank you. Wait for the thaw."',),
    ),
)

_channel = group(
    "channel",
    "Manage delivery channels: mail, webhooks and the inbox.",
    tenant_command(
        "list",
        "List the channels.",
        run="contacts.channels:list_channels",
        examples=("arbor contact channel list",),
    ),
    tenant_command(
        "add",
        "Add a channel. The secret that signs a webhook's requests is shown once.",
        argument("name"),
        option("--kind", type=one_of(_KINDS), required=True, help="Its kind."),
        option("--to", "target", default="", help="An e-mail address or a URL; none for the inbox."),
        option(
            "--audience",
            type=one_of(Audience),
            default=Audience.USER.value,
            show_default=True,
            help="The audience of its messages.",
        ),
        _agent(),
        run="contacts.channels:add",
        examples=(
            "arbor contact channel add ops --kind webhook --to https://example.org/arbor",
            "arbor contact channel add mail --kind email --to ann@example.org --agent Vega",
        ),
    ),
    tenant_command(
        "remove",
        "Remove a channel. Its pending messages fail with that reason.",
        argument("name"),
        run="contacts.channels:remove",
        examples=("arbor contact channel remove ops",),
    ),
    tenant_command(
        "enable",
        "Enable a channel again.",
        argument("name"),
        run="contacts.channels:enable",
        examples=("arbor contact channel enable ops",),
    ),
    tenant_command(
        "disable",
        "Disable a channel. Its pending messages fail with that reason.",
        argument("name"),
        run="contacts.channels:disable",
        examples=("arbor contact channel disable ops",),
    ),
    tenant_command(
        "test",
        "Send a test message once, and report the result.",
        argument("name"),
        run="contacts.channels:send_test",
        examples=("arbor contact channel test ops",),
    ),
    details="An agent without a channel for an audience uses its tenant's; where there is none either, it writes to the inbox.",
)

_webhook = group(
    "webhook",
    "Manage webhooks, which get signals by signed requests.",
    tenant_command(
        "list",
        "List the webhooks with their failures.",
        run="contacts.webhooks:list_webhooks",
        examples=("arbor contact webhook list",),
    ),
    tenant_command(
        "create",
        "Create a webhook for signals from now on. The secret that signs its requests is shown once.",
        argument("name"),
        option("--url", required=True, help="The receiver's address."),
        option(
            "--signal",
            "signals",
            multiple=True,
            metavar="NAME",
            help="Only these signals; `memory.goal_*` means all that begin so. Can be repeated.",
        ),
        _agent(),
        run="contacts.webhooks:create",
        examples=(
            "arbor contact webhook create ops --url https://example.org/signals",
            'arbor contact webhook create goals --url https://example.org/goals --signal "memory.goal_*" --agent Vega',
        ),
    ),
    tenant_command(
        "pause",
        "Pause a webhook. Its signals wait.",
        argument("name"),
        run="contacts.webhooks:pause",
        examples=("arbor contact webhook pause ops",),
    ),
    tenant_command(
        "resume",
        "Resume a webhook after the last signal that its receiver confirmed.",
        argument("name"),
        run="contacts.webhooks:resume",
        examples=("arbor contact webhook resume ops",),
    ),
    tenant_command(
        "delete",
        "Delete a webhook.",
        argument("name"),
        run="contacts.webhooks:delete",
        examples=("arbor contact webhook delete ops",),
    ),
)

_outbox = group(
    "outbox",
    "Manage agents' outgoing messages. ID is an id, or the last characters of one.",
    tenant_command(
        "list",
        "List outgoing messages and their delivery, the latest first.",
        _agent(),
        option("--status", type=one_of(DeliveryStatus), help="Only messages in this state."),
        _limit(),
        run="contacts.outbox:list_outbox",
        examples=("arbor contact outbox list --status failed",),
    ),
    tenant_command(
        "retry",
        "Retry a failed message, from its first attempt on.",
        argument("message_id", metavar="ID"),
        run="contacts.outbox:retry",
        examples=("arbor contact outbox retry 0c5512aa",),
    ),
    tenant_command(
        "cancel",
        "Cancel a message that was not sent. Its row stays.",
        argument("message_id", metavar="ID"),
        run="contacts.outbox:cancel",
        examples=("arbor contact outbox cancel 0c5512aa",),
    ),
)

_contact = group(
    "contact",
    "Manage delivery channels, webhooks, the outbox and peers.",
    _channel,
    _webhook,
    _outbox,
    agent_command(
        "peers",
        "List an agent's peers and its present trust in each.",
        run="selves.inner_state:list_peers",
        details="Everybody who writes to the agent is listed. A meeting counts once the agent judges it in a heartbeat; so does a"
        " conversation.",
        examples=("arbor contact peers Vega",),
    ),
)

COMMANDS = (_inbox, _contact)
