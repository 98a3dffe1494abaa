"""The commands about pinned memories, quotas and promotion candidates."""

from __future__ import annotations

from config.cli.commands.options import limit_option
from config.cli.kit.declarations import agent_command, argument, option

#: The most facts that `candidates` lists (`apps.heartbeats.services.reports.promotion_candidates`).
_MAX_CANDIDATES = 200

KNOWLEDGE = (
    agent_command(
        "pin",
        "Exempt memories from decay and forgetting, until they are unpinned.",
        argument("ids", metavar="ID...", nargs=-1, required=True),
        option("--reason", default="", metavar="TEXT", help="The reason, for the audit log."),
        run="memory.knowledge:pin_memories",
        details="A pinned memory has no expiry, and no quota archives it; a person may still archive it.",
        examples=("arbor memory pin Vega 4cd01f7e", 'arbor memory pin Vega 4cd01f7e --reason "house rule"'),
    ),
    agent_command(
        "unpin",
        "Unpin memories: they get back their decay, retention and expiry.",
        argument("ids", metavar="ID...", nargs=-1, required=True),
        option("--reason", default="", metavar="TEXT", help="The reason, for the audit log."),
        run="memory.knowledge:unpin_memories",
        examples=("arbor memory unpin Vega 4cd01f7e",),
    ),
    agent_command(
        "quotas",
        "Compare an agent's memories of each type with the quotas.",
        run="memory.knowledge:show_quotas",
        details="Above a quota, maintenance archives the least important memories of the type; permanent and pinned ones stay."
        " A pin is unused if it is at least a week old and the agent has not recalled the memory since.",
        examples=("arbor memory quotas Vega", "arbor memory quotas Vega --json"),
    ),
    agent_command(
        "candidates",
        "List the facts that consolidation may propose as parts of the self, and what each still lacks.",
        limit_option(_MAX_CANDIDATES),
        run="memory.knowledge:list_candidates",
        details="It changes nothing. A proposal is decided in a heartbeat or by a person (`arbor self proposal list`).",
        examples=("arbor memory candidates Vega", "arbor memory candidates Vega -k 50 --json"),
    ),
)
