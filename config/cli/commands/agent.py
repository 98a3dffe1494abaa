"""The commands about agents: their life cycle, heartbeats, policies, capabilities and identities."""

from __future__ import annotations

from decimal import Decimal

import click

from arbor.heartbeat.budgets import BudgetKind
from config.cli.commands.agent_knowledge import SKILL, SUBSCRIPTION
from config.cli.commands.approval import TRUST
from config.cli.commands.options import energy_options
from config.cli.commands.template import TEMPLATE
from config.cli.commands.tier import TIER
from config.cli.kit.declarations import (
    agent_command,
    argument,
    group,
    one_of,
    option,
    tenant_command,
)
from config.cli.kit.values import DurationType, ExpiryType, HoursType, LimitType, MomentType, NumberRange

#: The kinds of percepts that a person can add (`apps.agents.services.percepts.PERCEIVABLE_KINDS`).
PERCEIVED = ("environment", "interrupt", "error")
#: The most ticks of a cycle (`apps.heartbeats.services.inline.MAX_TICKS`).
MAX_TICKS = 256


def _lifecycle(name: str, summary: str) -> click.Command:
    examples = (f"arbor agent {name} Vega",)
    return agent_command(name, summary, run=f"agents.lifecycle:{name}", examples=examples)


_policy = group(
    "policy",
    "Manage an agent's budget, active hours, schedule, models and daily limits.",
    agent_command(
        "show",
        "Show an agent's policy.",
        run="agents.policy:show_policy",
        examples=("arbor agent policy show Vega",),
    ),
    agent_command(
        "set",
        "Change an agent's policy; fields without an option stay as they are.",
        option("--budget", type=one_of(BudgetKind), help="Kind of action budget."),
        option("--allowance", type=LimitType(int), help="Actions of a heartbeat, or ticks of a cycle."),
        *energy_options(),
        option(
            "--hours", type=HoursType(), help="Active hours, as 08:00-22:00 or 22:00-06:00; none: always."
        ),
        option("--time-zone", help="Time zone of the hours, as Europe/Berlin."),
        option("--adaptive/--steady", default=None, help="Run less often while nothing happens, or not."),
        option("--daily-heartbeats", type=LimitType(int), help="Heartbeats per day (UTC); none: no limit."),
        option("--daily-tokens", type=LimitType(int), help="Tokens per day."),
        option("--daily-usd", type=LimitType(Decimal), help="US dollars per day."),
        option(
            "--follow-ups",
            type=LimitType(int),
            help="Further round trips of a heartbeat, with the results of its actions.",
        ),
        option(
            "--voices",
            type=int,
            help="Inner voices asked before a hard decision, 2 to 4, each by a model call; 0: none.",
        ),
        option(
            "--models",
            "tier_models",
            help='Models by tier, in JSON: {"tier": ["provider/model", …]}; none: the agent\'s model for all.',
        ),
        run="agents.policy:set_fields",
        examples=(
            "arbor agent policy set Vega --hours 08:00-22:00 --time-zone Europe/Berlin --daily-usd 0.50",
        ),
    ),
)

_LIMITS = (
    option("--from", "not_before", type=MomentType(), help="Its beginning.  [default: now]"),
    option("--expires", "expires_at", type=ExpiryType(), help="Its end: 2h, 30d, or a date."),
    option("--uses", "max_uses", type=click.IntRange(1, 1_000_000), help="Uses in all."),
    option("--rate-uses", type=click.IntRange(1, 1_000_000), help="Uses within --rate-period."),
    option("--rate-period", type=DurationType(), help="The period of --rate-uses, as 1h."),
    option(
        "--hours", default="", help='Hours in which it is in force: 09:00-17:00 or "09:00-17:00 mon,fri".'
    ),
    option("--time-zone", default="UTC", help="Time zone of the hours."),
    option("--depth", type=click.IntRange(0, 10), help="The levels of delegation that are allowed below it."),
)
_capability = group(
    "capability",
    "Grant, delegate and revoke what an agent may do. A resource is an arbor:// URI, or the name of an action.",
    agent_command(
        "list",
        "List the capabilities of an agent.",
        option("--revoked", "with_revoked", is_flag=True, help="Include revoked ones."),
        run="agents.capabilities:list_grants",
        examples=("arbor agent capability list Vega --revoked",),
    ),
    agent_command(
        "grant",
        "Grant a capability to an agent.",
        argument("resource"),
        *_LIMITS,
        run="agents.capabilities:grant",
        examples=(
            "arbor agent capability grant Vega reach_out_public --expires 30d",
            "arbor agent capability grant Vega inquire_deep --rate-uses 5 --rate-period 1h",
        ),
    ),
    agent_command(
        "delegate",
        "Delegate a capability of an agent, or a part of it, to another agent of the tenant.",
        argument("capability", metavar="ID"),
        option("--to", "to_agent", required=True, metavar="AGENT", help="The agent that receives it."),
        option("--resource", help="A part of its resource.  [default: all of it]"),
        *_LIMITS,
        run="agents.capabilities:delegate",
        details="Limits without an option are inherited; a delegated capability never exceeds the one that it comes from.",
        examples=("arbor agent capability delegate Vega 3f2a9c01 --to Lyra --expires 2d",),
    ),
    agent_command(
        "revoke",
        "Revoke a capability and all that was delegated from it.",
        argument("capability", metavar="ID"),
        option("--reason", required=True, help="The reason; the agent reads it."),
        run="agents.capabilities:revoke",
        examples=('arbor agent capability revoke Vega 3f2a9c01 --reason "no longer needed"',),
    ),
    agent_command(
        "why",
        "Explain whether an agent may use a resource now, and why not.",
        argument("resource"),
        run="agents.capabilities:why",
        details="Exit code 0 when it may, 1 when it may not.",
        examples=("arbor agent capability why Vega reach_out_public",),
    ),
)

_identity = group(
    "identity",
    "Manage the identities of agents: keys, and the endorsement of the installation's System Authority.",
    agent_command(
        "show",
        "Show an agent's keys and endorsement, verified.",
        run="agents.identities:show",
        examples=("arbor agent identity show Vega",),
    ),
    agent_command(
        "suspend",
        "Suspend an agent's identity: the agent has no heartbeats and answers nobody until the identity is reinstated.",
        option("--reason", required=True, help="Why; it is signed, and shown to those who ask."),
        run="agents.identities:suspend",
        examples=('arbor agent identity suspend Vega --reason "its key leaked"',),
    ),
    agent_command(
        "reinstate",
        "End the suspension of an agent's identity; heartbeats of an active agent go on.",
        run="agents.identities:reinstate",
        examples=("arbor agent identity reinstate Vega",),
    ),
    agent_command(
        "revoke",
        "Revoke an agent's identity for good: it never acts again. Its data stays.",
        option("--reason", required=True, help="Why; it is signed, and shown to those who ask."),
        run="agents.identities:revoke",
        examples=('arbor agent identity revoke Vega --reason "it was stolen"',),
    ),
    agent_command(
        "rotate",
        "Replace an agent's keys: the new one is signed by the one before, and the public id stays.",
        run="agents.identities:rotate",
        examples=("arbor agent identity rotate Vega",),
    ),
)

_agent = group(
    "agent",
    "Create, start, run, trace and destroy agents.",
    tenant_command(
        "list",
        "List the agents of a tenant, or of all tenants (which is audited).",
        run="agents.lifecycle:list_all",
        examples=("arbor agent list --tenant acme --json",),
    ),
    agent_command(
        "show",
        "Show an agent: status, energy, next heartbeat, goals and working memory.",
        option("--prompt", is_flag=True, help="Include its character as prompts have it."),
        run="agents.lifecycle:show_one",
        examples=("arbor agent show Vega --prompt",),
    ),
    agent_command(
        "profile",
        "Print an agent's profile as one JSON document: character, identity, requested capabilities.",
        run="agents.identities:show_profile",
        examples=("arbor agent profile Vega",),
    ),
    tenant_command(
        "create",
        "Create an agent from a template; it has no heartbeats before it is started.",
        argument("name"),
        option(
            "--template",
            "template_name",
            metavar="NAME",
            required=True,
            help="The template; `arbor agent template list` lists them.",
        ),
        option(
            "--interval",
            type=DurationType(),
            help="Time between heartbeats: 30s, 5m, 1h.  [default: the template's]",
        ),
        option("--model", default="", help="Its model, as provider/model.  [default: the installation's]"),
        option("--start", "starts", is_flag=True, help="Start it, too."),
        option("--if-missing", is_flag=True, help="Leave an agent of this name and template as it is."),
        run="agents.lifecycle:create",
        examples=("arbor agent create Vega --template Scout --interval 5m --start",),
    ),
    _lifecycle("start", "Start a new or stopped agent's heartbeats."),
    _lifecycle("pause", "Pause an agent's heartbeats."),
    _lifecycle("resume", "Resume a paused agent."),
    _lifecycle("stop", "Stop an agent, reversibly."),
    _lifecycle("sleep", "Put an agent to sleep until it is woken, or gets a message."),
    _lifecycle("wake", "Wake an agent that sleeps."),
    tenant_command(
        "pause-all",
        "Pause all active agents of a tenant; heartbeats under way end by themselves.",
        option("--reason", default="", help="Why, for the audit log."),
        run="agents.lifecycle:pause_all",
        details="`arbor tenant suspend-all` halts all tenants of the installation.",
        examples=('arbor agent pause-all --tenant acme --reason "prices rose"',),
    ),
    tenant_command(
        "resume-all",
        "Resume the paused agents of a tenant, except those that were paused one by one.",
        run="agents.lifecycle:resume_all",
        examples=("arbor agent resume-all --tenant acme",),
    ),
    agent_command(
        "publish",
        "Publish an agent to agents elsewhere, which find its card and give it tasks by the protocol A2A.",
        option("--description", help="Description on its card.  [default: as it is; at first its role]"),
        run="agents.lifecycle:publish",
        details="The card is readable without a token; tasks need one. docs/how-to/connect-other-agents.md.",
        examples=('arbor agent publish Vega --description "Knows the river and its tides."',),
    ),
    _lifecycle("unpublish", "Withdraw an agent's card; agents elsewhere reach it no longer."),
    agent_command(
        "destroy",
        "Delete an agent and all its data, for good. The audit of its acts stays.",
        option("--confirm", metavar="NAME", help="The agent's name once more.  [default: asked for]"),
        option(
            "--no-seed",
            is_flag=True,
            help="Save no seed of the agent; without this option one stays for 30 days.",
        ),
        run="agents.lifecycle:destroy",
        examples=("arbor agent destroy Vega --confirm Vega",),
    ),
    agent_command(
        "tell",
        "Send an agent a message; its next heartbeat starts at once. TEXT - is standard input.",
        argument("text"),
        run="agents.lifecycle:send_message",
        examples=('arbor agent tell Vega "What did you find by the river?"',),
    ),
    agent_command(
        "perceive",
        "Add an event to what an agent perceives. TEXT - is standard input.",
        argument("text"),
        option(
            "--kind",
            type=one_of(PERCEIVED),
            default=PERCEIVED[0],
            help="Kind of event; an interrupt is always urgent.",
        ),
        option("--urgent", is_flag=True, help="Start its next heartbeat at once."),
        option("--detail", default="{}", show_default=False, help="A JSON object with details."),
        run="agents.lifecycle:perceive_event",
        examples=('arbor agent perceive Vega "The river is rising" --urgent',),
    ),
    agent_command(
        "run",
        "Run a heartbeat of an active agent now, and print its trace.",
        option(
            "--here",
            is_flag=True,
            help="Run it in this process even if workers run.  [default: only if no workers run]",
        ),
        option(
            "--timeout",
            type=NumberRange(min=1),
            default=300.0,
            help="Seconds to follow a heartbeat that workers run.",
        ),
        run="agents.heartbeats:run_one",
        details="Exit code 1 when the heartbeat fails.",
        examples=("arbor agent run Vega",),
    ),
    agent_command(
        "cycle",
        "Run heartbeats of an active agent here until its ticks are used up or nothing is left to do.",
        option(
            "--ticks",
            type=click.IntRange(1, MAX_TICKS),
            help="Allocate this many ticks first.  [default: those left]",
        ),
        run="agents.heartbeats:run_cycle",
        details="Each action costs a tick, and so does a heartbeat that does nothing. A model that does not answer costs none and"
        " ends the cycle. Exit code 1 when the last heartbeat failed.",
        examples=("arbor agent cycle Vega --ticks 12",),
    ),
    agent_command(
        "trace",
        "Print what a heartbeat saw, decided and did.",
        option(
            "--heartbeat", "number", type=click.IntRange(min=1), help="Its number.  [default: the last one]"
        ),
        run="agents.heartbeats:show_trace",
        examples=("arbor agent trace Vega --heartbeat 3",),
    ),
    tenant_command(
        "replay",
        "Replay a recorded heartbeat and show what differs. Nothing is written.",
        argument("heartbeat_id", metavar="ID"),
        option("--model", help="Ask this model too, as provider/model, and show its decisions."),
        run="agents.replay:replay",
        details="Renders the prompt, reads the recorded replies and decides again. ID is an id, or the last characters of one;"
        " `arbor agent trace AGENT` shows them. Exit code 0 when all is the same, 1 when something differs.",
        examples=("arbor agent replay 3f2a9c01 --model ollama/qwen3",),
    ),
    _capability,
    _identity,
    TIER,
    SKILL,
    SUBSCRIPTION,
    _policy,
    TEMPLATE,
    TRUST,
)

_chat = agent_command(
    "chat",
    "Talk to an agent; Ctrl-D ends it. The agent remembers the conversation.",
    option("-m", "--message", help="Send one message and end; - is standard input."),
    option("--history", "shows_history", is_flag=True, help="Show earlier turns, and send nothing."),
    option(
        "-n",
        "--limit",
        type=click.IntRange(1, 1000),
        default=40,
        help="Turns that --history shows.",
    ),
    run="contacts.chat:chat",
    details="A conversation is no heartbeat: the agent answers at once, in this process, and its schedule pauses meanwhile."
    " A conversation that mattered triggers a heartbeat when it ends. Exit code 1 when there was no answer.",
    examples=(
        "arbor chat Vega",
        'arbor chat Vega --message "What did we agree about the boat?" --json',
        "arbor chat Vega --history",
    ),
)

COMMANDS = (_agent, _chat)
