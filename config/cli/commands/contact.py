"""The commands about contacts: inbox, delivery channels, webhooks, hooks, outbox and peers."""

from __future__ import annotations

import click

from arbor.contacts.hooks import HookDeliveryStatus, HookKind
from arbor.contacts.values import Audience, ChannelKind, DeliveryStatus
from config.cli.commands.options import limit_option
from config.cli.kit.declarations import agent_command, argument, group, one_of, option, tenant_command
from config.cli.kit.values import NumberRange

_KINDS = [kind for kind in ChannelKind if kind is not ChannelKind.PEER]


def _agent() -> click.Option:
    return option("--agent", metavar="NAME", help="Only this agent's.")


def _mappings() -> click.Option:
    return option(
        "--map",
        "mappings",
        multiple=True,
        metavar="NAME=TEMPLATE",
        help="The text of title, text, sender, importance or event, with paths of the body: {a.b} or {/a/0}. Can be repeated.",
    )


def _events() -> click.Option:
    return option(
        "--event",
        "events",
        multiple=True,
        metavar="NAME",
        help="Only these events; `issues` means `issues.opened` too. Can be repeated.",
    )


def _urgent_from() -> click.Option:
    return option(
        "--urgent-from",
        type=NumberRange(0, 1),
        help="The importance from which a delivery starts the next heartbeat at once; none: no delivery does.",
    )


def _secret_file() -> click.Option:
    return option(
        "--secret-file",
        type=click.File(encoding="utf-8"),
        help="A file with the secret that the sender generated (- is standard input); none: Arbor generates one.",
    )


def _deliveries(noun: str, *, example: str) -> click.Command:
    return tenant_command(
        "deliveries",
        f"List the deliveries of {noun}s, the latest first.",
        argument("name", required=False),
        option("--status", type=one_of(HookDeliveryStatus), help="Only deliveries in this status."),
        limit_option(500, short=""),
        run=f"contacts.hooks:list_{noun}_deliveries",
        examples=(example,),
    )


_inbox = group(
    "inbox",
    "Read and answer agents' messages. ID is an id, or the last characters of one.",
    tenant_command(
        "list",
        "List the messages from agents, the latest first.",
        _agent(),
        option("--unread", is_flag=True, help="Only unread messages."),
        limit_option(500, short=""),
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
        "Remove a channel. Its pending messages fail.",
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
        "Disable a channel. Its pending messages fail.",
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
    tenant_command(
        "rotate",
        "Give a webhook a new secret, which is shown once. For a day, its requests are signed by the one before too, if it can be opened.",
        argument("name"),
        run="contacts.webhooks:rotate",
        examples=("arbor contact webhook rotate ops",),
    ),
    _deliveries("webhook", example="arbor contact webhook deliveries --status failed"),
    tenant_command(
        "resend",
        "Send a delivery of a webhook again, with the same id and signals. ID is an id, or the last characters of one.",
        argument("delivery_id", metavar="ID"),
        run="contacts.hooks:resend",
        examples=("arbor contact webhook resend 0c5512aa",),
    ),
)

_hook = group(
    "hook",
    "Manage hooks: addresses at which other systems post what an agent should perceive.",
    tenant_command(
        "list",
        "List the hooks.",
        run="contacts.hooks:list_hooks",
        examples=("arbor contact hook list",),
    ),
    tenant_command(
        "create",
        "Create a hook of an agent. Its secret is shown once.",
        argument("name"),
        option("--agent", metavar="NAME", required=True, help="The agent that perceives the deliveries."),
        option(
            "--kind",
            type=one_of(HookKind),
            default=HookKind.JSON.value,
            help="The kind of requests.",
        ),
        _mappings(),
        _events(),
        option(
            "--header",
            default="",
            help="The header with an HMAC-SHA256 of the body in hexadecimal; none: the headers of Standard Webhooks.",
        ),
        _urgent_from(),
        _secret_file(),
        run="contacts.hooks:create",
        examples=(
            "arbor contact hook create river --agent Vega --kind github --event issues --event push",
            'arbor contact hook create alarms --agent Vega --map "title={data.title}" --map "importance={data.level}"',
        ),
    ),
    tenant_command(
        "change",
        "Change the mapping, the events and the urgency of a hook. What is not given stays.",
        argument("name"),
        _mappings(),
        _events(),
        option("--all-events", is_flag=True, help="All events."),
        _urgent_from(),
        option("--never-urgent", is_flag=True, help="No delivery is urgent."),
        run="contacts.hooks:change",
        examples=('arbor contact hook change alarms --map "text={data.lines.0}"',),
    ),
    tenant_command(
        "try",
        "Show the message that a mapping would give for the body in FILE (- is standard input). Nothing is stored.",
        argument("sample", metavar="FILE", type=click.File(encoding="utf-8")),
        _mappings(),
        option(
            "--hook", "name", metavar="NAME", help="A hook; its mapping gives the texts that --map does not."
        ),
        run="contacts.hooks:try_body",
        examples=('arbor contact hook try body.json --map "title={data.title}"',),
    ),
    tenant_command(
        "enable",
        "Switch a hook on again.",
        argument("name"),
        run="contacts.hooks:enable",
        examples=("arbor contact hook enable river",),
    ),
    tenant_command(
        "disable",
        "Switch a hook off. Its deliveries are refused, so that their senders repeat them.",
        argument("name"),
        run="contacts.hooks:disable",
        examples=("arbor contact hook disable river",),
    ),
    tenant_command(
        "rotate",
        "Give a hook a new secret, which is shown once. The one before, if it can be opened, is valid for a day more.",
        argument("name"),
        _secret_file(),
        run="contacts.hooks:rotate",
        examples=("arbor contact hook rotate river",),
    ),
    tenant_command(
        "delete",
        "Delete a hook, with the log of its deliveries. The agent's percepts stay.",
        argument("name"),
        run="contacts.hooks:delete",
        examples=("arbor contact hook delete river",),
    ),
    _deliveries("hook", example="arbor contact hook deliveries river --status ignored"),
)

_outbox = group(
    "outbox",
    "Manage agents' outgoing messages. ID is an id, or the last characters of one.",
    tenant_command(
        "list",
        "List outgoing messages and their delivery, the latest first.",
        _agent(),
        option("--status", type=one_of(DeliveryStatus), help="Only messages in this status."),
        limit_option(500, short=""),
        run="contacts.outbox:list_outbox",
        examples=("arbor contact outbox list --status failed",),
    ),
    tenant_command(
        "retry",
        "Retry a failed message, with all its attempts again.",
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
    "Manage delivery channels, webhooks, hooks, the outbox and peers.",
    _channel,
    _webhook,
    _hook,
    _outbox,
    agent_command(
        "peers",
        "List an agent's peers and its present trust in each.",
        run="selves.inner_state:list_peers",
        details="Everybody who writes to the agent is listed. A message or a conversation counts once a heartbeat of"
        " the agent has judged it.",
        examples=("arbor contact peers Vega",),
    ),
)

COMMANDS = (_inbox, _contact)
