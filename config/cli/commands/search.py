"""The command that searches all sources of an agent."""

from __future__ import annotations

from config.cli.commands.options import limit_option
from config.cli.kit.declarations import agent_command, argument, option

_search = agent_command(
    "search",
    "Search an agent's memories, documents, outputs of workflows and the audit log about QUERY, best first.",
    argument("query"),
    option(
        "--term",
        default="",
        help="A word that messages of the audit log and outputs of workflows must have.  [default: a part of QUERY]",
    ),
    limit_option(25, 5),
    run="search:search_all",
    details="Each result has its source, and the score 0.5 similarity + 0.2 recency + 0.2 importance + 0.1 source priority"
    " (ARBOR_SEARCH_WEIGHTS). The audit log is searched if the agent has the capability arbor://knowledge/audit/read.",
    examples=('arbor search Vega "Who approves flights?"', "arbor search Vega quay --term quay -k 10 --json"),
)

COMMANDS = (_search,)
