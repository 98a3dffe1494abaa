"""The commands about an agent's memory."""

from __future__ import annotations

from pathlib import Path

import click

from arbor.memory.conversations.conversation import ConversationFormat
from arbor.memory.recall.recall_request import MAX_LIMIT
from arbor.memory.trust import DEFAULT_SOURCE_TRUST
from arbor.memory.values import MemoryStatus, MemoryType
from config.cli.commands.memory_graph import CLUSTER, CONCEPT, GRAPH
from config.cli.commands.memory_knowledge import KNOWLEDGE
from config.cli.commands.memory_upkeep import BUFFER, CODE, MIND, UPKEEP
from config.cli.commands.options import (
    SHARE,
    concept_option,
    limit_option,
    reason_option,
    time_options,
    types_option,
)
from config.cli.kit.declarations import agent_command, argument, group, one_of, option, tenant_command
from config.cli.kit.values import ExpiryType, NumberRange, TrustedSource

#: The most thoughts that are stored (`apps.heartbeats.services.reports.thoughts.RING`).
MAX_THOUGHTS = 50

_remember = agent_command(
    "remember",
    "Add a memory to an agent; the same text twice is one memory. TEXT - is standard input.",
    argument("text"),
    option(
        "--type",
        "kind",
        type=one_of(MemoryType),
        default=MemoryType.SEMANTIC.value,
        help="An event, a fact, a procedure, or a strategy.",
    ),
    option("--importance", type=SHARE, help="Its importance.  [default: computed from the text]"),
    option("--expires", "expires_at", type=ExpiryType(), help="Its expiry: 2d, or a date.  [default: never]"),
    run="memory.ingestion:remember",
    examples=(
        'arbor remember Vega "The archive opens at nine."',
        'arbor remember Vega "The gate code is 4711." --expires 2d --importance 0.9',
    ),
)

_FILTERS = (
    types_option(),
    *time_options(),
    option("--session", default="", help="Only memories of one session."),
    concept_option(),
    option("--cluster", metavar="NAME", help="Only memories of a cluster, by its name or id."),
    option("--episode", metavar="ID", help="Only memories of one episode."),
    option("--min-importance", type=SHARE, default=0.0, help="The least importance."),
    option("--min-trust", type=SHARE, default=0.0, help="The least trust."),
)

_recall = agent_command(
    "recall",
    "Recall an agent's memories about QUERY, best first, with the components of each score.",
    argument("query"),
    limit_option(MAX_LIMIT, 10),
    option("--episodes", is_flag=True, help="Recall whole episodes, by their summaries, at most 100."),
    *_FILTERS,
    run="memory.recall:recall_memories",
    details="It does not count as the agent's own recall. Components: meaning, words, neighbours (what was said just before and after),"
    " association (what comes to mind with it), session, episode, speaker, time (the query names one), recency, importance,"
    " trust, activation (recalled lately), mood.",
    examples=(
        'arbor recall Vega "What did Nora plant in May?"',
        "arbor recall Vega quince -k 3 --json",
        'arbor recall Vega "what was decided" --type episodic --since 2026-05-01 --min-importance 0.6',
        'arbor recall Vega "the garden in spring" --episodes',
    ),
)

_memory = group(
    "memory",
    "Inspect and edit an agent's memory. ID is an id, or the last eight or more characters of one.",
    agent_command(
        "list",
        "List an agent's memories, the latest first.",
        types_option(),
        option(
            "--status",
            type=one_of([*MemoryStatus, "all"]),
            default=MemoryStatus.ACTIVE.value,
            help="Only memories in this status.",
        ),
        option("--session", help="Only memories of one session."),
        option("--role", help="Only what one speaker said."),
        concept_option(),
        option("--min-importance", type=SHARE, help="The least importance."),
        option("--min-trust", type=SHARE, help="The least trust."),
        option("--pinned", is_flag=True, help="Only pinned memories."),
        *time_options(),
        limit_option(1000),
        run="memory.listing:list_memories",
        details="It does not count as a recall.",
        examples=(
            "arbor memory list Vega",
            "arbor memory list Vega --type procedural --type strategic --min-trust 0.5",
            "arbor memory list Vega --concept water --since 2026-01-01 --json",
        ),
    ),
    agent_command(
        "show",
        "Show a memory: its details, the reasons for its importance, its sources and its neighborhood.",
        argument("memory_id", metavar="ID"),
        run="memory.details:show_memory",
        details="It does not count as a recall.",
        examples=("arbor memory show Vega 4cd01f7e", "arbor memory show Vega 4cd01f7e --json"),
    ),
    agent_command(
        "similar",
        "Show the memories nearest to TEXT by meaning alone: words, time and importance do not count.",
        argument("text"),
        limit_option(MAX_LIMIT, 10),
        types_option(),
        run="memory.listing:list_similar",
        details="It does not count as a recall. `arbor recall` shows what the agent would recall.",
        examples=(
            'arbor memory similar Vega "the river was frozen"',
            'arbor memory similar Vega "how to read a gauge" --type procedural -k 3',
        ),
    ),
    agent_command(
        "why",
        "Explain why QUERY recalls a memory or does not: its rank, its score components, or what excludes it.",
        argument("query"),
        option("--memory", "memory_id", metavar="ID", required=True, help="The memory."),
        limit_option(MAX_LIMIT, 10),
        *_FILTERS,
        run="memory.recall:explain",
        details="It does not count as a recall.",
        examples=('arbor memory why Vega "When does the ferry leave?" --memory 5f0c2a91',),
    ),
    agent_command(
        "episodes",
        "List an agent's episodes, the latest first; or show one with its summary and memories.",
        argument("episode_id", metavar="[EPISODE]", required=False),
        limit_option(1000),
        run="memory.episodes:show_episodes",
        examples=("arbor memory episodes Vega", "arbor memory episodes Vega 77aa01c2"),
    ),
    tenant_command(
        "ingest",
        "Add a conversation from a file to an agent's memory. Run again, it adds only what is new.",
        argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
        option("--agent", required=True, metavar="NAME", help="The agent."),
        option(
            "--format",
            "form",
            type=one_of(ConversationFormat),
            help="The file's format.  [default: detected]",
        ),
        option("--sample", help="The dialog to read, of a LoCoMo file with several."),
        run="memory.ingestion:ingest_file",
        details="FILE is LoCoMo's JSON (locomo), a JSON object with role, content and perhaps timestamp per line (messages), or"
        " `Speaker: text` per line, perhaps with [2024-05-01 10:30] before it (plain). Lines that cannot be read are listed"
        " and stop nothing; exit code 1 when no line can be read.",
        examples=(
            "arbor memory ingest chat.jsonl --agent Vega",
            "arbor memory ingest locomo10.json --sample conv-26 --agent Vega --tenant acme",
        ),
    ),
    agent_command(
        "add",
        "Add a memory of any type, made from its parts; a known memory is reinforced.",
        argument("text"),
        option(
            "--type",
            "kind",
            type=one_of(MemoryType),
            required=True,
            help="An event, a fact, a procedure, or a strategy.",
        ),
        option("--importance", type=SHARE, help="Its importance.  [default: computed from the text]"),
        option(
            "--concept", "concepts", multiple=True, metavar="NAME", help="A concept that it is a case of."
        ),
        option("--context", default="", help="episodic: the situation."),
        option("--done", default="", help="episodic: the action."),
        option("--result", default="", help="episodic: the result."),
        option("--feeling", default="", help="episodic: the feeling, as joy or worry."),
        option("--valence", type=NumberRange(-1, 1), help="episodic: from -1, bad, to 1, good."),
        option("--confidence", type=SHARE, help="semantic, strategic: how sure."),
        option("--category", default="", help="semantic: the kind of fact."),
        option(
            "--source",
            "sources",
            multiple=True,
            type=TrustedSource(),
            metavar="KIND:NAME[@TRUST]",
            help="semantic: its source; a fact without a source is trusted by 0.15.",
        ),
        option("--contradicts", multiple=True, metavar="ID", help="semantic: a memory that it contradicts."),
        option("--supports-belief", multiple=True, metavar="ID", help="semantic: a belief that it supports."),
        option(
            "--against-belief", multiple=True, metavar="ID", help="semantic: a belief that it contradicts."
        ),
        option("--step", "steps", multiple=True, help="procedural: a step; repeat it in order."),
        option("--needs", multiple=True, help="procedural: a precondition."),
        option("--pattern", default="", help="strategic: the pattern."),
        option("--evidence", multiple=True, help="strategic: a case of the pattern."),
        option("--applies-to", multiple=True, help="strategic: a situation where it applies."),
        run="memory.creation:add_memory",
        examples=(
            'arbor memory add Vega "Read a depth gauge" --type procedural --step "Wait for slack water" --step "Note the tide"',
            'arbor memory add Vega "The quay was dredged in spring" --type semantic --source document:harbour-log@0.9',
            'arbor memory add Vega "The ferry stopped" --type episodic --context "ice on the river" --feeling worry'
            " --valence -0.4",
        ),
    ),
    agent_command(
        "practise",
        "Record the outcome of following a procedure.",
        argument("memory_id", metavar="ID"),
        option("--success/--failure", default=None, help="The outcome."),
        run="memory.creation:record_practice",
        examples=(
            "arbor memory practise Vega 4cd01f7e --success",
            "arbor memory practise Vega 4cd01f7e --failure",
        ),
    ),
    agent_command(
        "source",
        "Add a source to a fact; trust in the fact never falls by it. The same source counts once.",
        argument("memory_id", metavar="ID"),
        option("--kind", required=True, help="Kind of source: person, document…"),
        option("--reference", required=True, help="Name of the source: Ana, harbour-log."),
        option(
            "--trust",
            type=SHARE,
            default=DEFAULT_SOURCE_TRUST,
            help="Trust in the source.",
        ),
        run="memory.creation:add_another_source",
        examples=("arbor memory source Vega 4cd01f7e --kind document --reference harbour-log --trust 0.9",),
    ),
    agent_command(
        "archive",
        "Exclude memories from recall. Nothing is lost: `arbor memory restore` reverts it.",
        argument("ids", metavar="ID...", nargs=-1, required=True),
        reason_option(),
        run="memory.archive:archive_memories",
        examples=('arbor memory archive Vega 4cd01f7e --reason "it was about another ferry"',),
    ),
    agent_command(
        "restore",
        "Include archived memories in recall again.",
        argument("ids", metavar="ID...", nargs=-1, required=True),
        reason_option(),
        option("--for-good", is_flag=True, help="Exempt them from forgetting from now on."),
        run="memory.archive:restore_memories",
        examples=('arbor memory restore Vega 4cd01f7e --reason "it matters after all" --for-good',),
    ),
    agent_command(
        "purge",
        "Delete archived memories with all that depends on them. It cannot be undone.",
        argument("ids", metavar="ID...", nargs=-1, required=True),
        reason_option(),
        option("--yes", is_flag=True, help="Do not ask."),
        run="memory.archive:purge_memories",
        examples=(
            'arbor memory archive Vega 4cd01f7e --reason "asked to be forgotten"',
            'arbor memory purge Vega 4cd01f7e --reason "asked to be forgotten"',
        ),
    ),
    agent_command(
        "forget",
        "Show the memories that maintenance would archive next, and why. It changes nothing.",
        option("--dry-run", is_flag=True, help="Confirm that nothing changes: maintenance alone forgets."),
        run="memory.archive:show_forgetting",
        examples=("arbor memory forget Vega --dry-run",),
    ),
    *KNOWLEDGE,
    agent_command(
        "thoughts",
        "List an agent's thoughts in heartbeats and conversations, the latest first.",
        limit_option(MAX_THOUGHTS, short="-n"),
        run="memory.mind:list_thoughts",
        examples=("arbor memory thoughts Vega -n 5",),
    ),
    CLUSTER,
    CONCEPT,
    GRAPH,
    BUFFER,
    MIND,
    CODE,
    *UPKEEP,
)

COMMANDS = (_remember, _recall, _memory)
