"""The commands about requests for approval, and about the trust rules that decide which actions need one."""

from __future__ import annotations

from arbor.authority.modes import TrustMode, TrustPreset
from config.cli.kit.declarations import agent_command, argument, group, one_of, option, tenant_command

_ID_DETAILS = "An ID is the id of a request, or its last characters."


_rule = group(
    "rule",
    "Manage the trust rules for all agents of a tenant.",
    tenant_command(
        "list",
        "List the rules for all agents.",
        run="approvals:list_rules",
        examples=("arbor approval rule list",),
    ),
    tenant_command(
        "set",
        "Set the mode of a resource and everything below it, for all agents.",
        argument("prefix", metavar="URI"),
        argument("mode", type=one_of(TrustMode)),
        run="approvals:set_rule",
        details="block: never runs; ask: a person approves each request; allow, auto: runs (allow counts as the stricter). The"
        " longest URI decides; a rule of an agent takes precedence over a rule of the tenant for the same URI.",
        examples=("arbor approval rule set arbor://actions/execute/reach_out_public ask",),
    ),
    tenant_command(
        "clear",
        "Remove a rule for all agents.",
        argument("prefix", metavar="URI"),
        run="approvals:clear_rule",
        examples=("arbor approval rule clear arbor://actions/execute/reach_out_public",),
    ),
)

_approval = group(
    "approval",
    "Approve or deny what agents ask for.",
    tenant_command(
        "list",
        "List the requests that wait for a person, the latest first.",
        option("--agent", "agent", metavar="NAME", help="Only this agent's."),
        option("--all", "with_decided", is_flag=True, help="Include decided and expired ones."),
        run="approvals:list_approvals",
        examples=("arbor approval list", "arbor approval list --agent Vega --all"),
    ),
    tenant_command(
        "show",
        "Show a request with its complete parameters.",
        argument("approval_id", metavar="ID"),
        run="approvals:show",
        details=_ID_DETAILS,
        examples=("arbor approval show 0c5512aa",),
    ),
    tenant_command(
        "approve",
        "Approve a request: the next heartbeat, due now, executes it with these parameters, once.",
        argument("approval_id", metavar="ID"),
        option("--reason", default="", help="The reason, for the audit log."),
        option("--always", is_flag=True, help="Allow the action without asking from now on."),
        run="approvals:approve_one",
        details=_ID_DETAILS,
        examples=("arbor approval approve 0c5512aa", "arbor approval approve 0c5512aa --always"),
    ),
    tenant_command(
        "deny",
        "Deny a request, or withdraw an approval that was not used yet.",
        argument("approval_id", metavar="ID"),
        option("--reason", default="", help="The reason, which the agent reads."),
        run="approvals:deny_one",
        details=_ID_DETAILS,
        examples=('arbor approval deny 0c5512aa --reason "not before Monday"',),
    ),
    _rule,
    details="`arbor agent trust` and `arbor approval rule` decide which actions wait for a person."
    " docs/how-to/approve-actions.md.",
)

TRUST = group(
    "trust",
    "Manage the trust in an agent: which of its actions run, and which wait for a person.",
    agent_command(
        "show",
        "Show the preset, the rules, and the mode of each action.",
        run="approvals:show_trust",
        examples=("arbor agent trust show Vega",),
    ),
    agent_command(
        "preset",
        "Set the preset that decides about resources without a rule.",
        argument("preset", type=one_of(TrustPreset)),
        run="approvals:choose_preset",
        details="cautious: all that leaves the installation waits for a person, and so does the start of a workflow; balanced:"
        " publishing, tools and the start of a workflow wait; hands_off: only the start of a workflow waits; full_trust: everything"
        " runs that no ceiling makes wait.",
        examples=("arbor agent trust preset Vega balanced",),
    ),
    agent_command(
        "set",
        "Set the mode of a resource and everything below it.",
        argument("prefix", metavar="URI"),
        argument("mode", type=one_of(TrustMode)),
        run="approvals:set_agent_rule",
        examples=("arbor agent trust set Vega arbor://actions/execute/mcp.tickets ask",),
    ),
    agent_command(
        "clear",
        "Remove a rule of the agent.",
        argument("prefix", metavar="URI"),
        run="approvals:clear_agent_rule",
        examples=("arbor agent trust clear Vega arbor://actions/execute/mcp.tickets",),
    ),
)

COMMANDS = (_approval,)
