"""The commands about an agent's memory."""

from __future__ import annotations

from pathlib import Path

import click

from arbor.memory.activation import MOST_KEPT
from arbor.memory.buffer import LASTS
from arbor.memory.conversation import ConversationFormat
from arbor.memory.recall_request import MAX_LIMIT
from arbor.memory.relations import Relation
from arbor.memory.traversal import MAX_HOPS
from arbor.memory.trust import DEFAULT_SOURCE_TRUST
from arbor.memory.values import MemoryStatus, MemoryType
from config.cli.kit import agent_command, argument, command, group, one_of, option, tenant_command
from config.cli.values import DurationType, ExpiryType, MomentType, TrustedSource, in_words

#: Most thoughts that are kept (`apps.heartbeats.services.thoughts.RING`).
MOST_THOUGHTS = 50
#: Most code snippets that are listed (`apps.memories.services.store.snippets.MAX_LIMIT`).
MOST_CODE = 100
#: Edges that a search for evidence walks (`apps.memories.services.graph.traversal.EVIDENCE_HOPS`).
EVIDENCE_HOPS = 2
#: Memories that are embedded at once (`apps.memories.services.embedding.reembed.BATCH`).
REEMBED_BATCH = 500

_share = click.FloatRange(0, 1)


def _limit(most: int, default: int = 20) -> click.Option:
    return option(
        "-k",
        "--limit",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help="Most results.",
    )


def _hops(default: int) -> click.Option:
    return option(
        "--hops",
        type=click.IntRange(1, MAX_HOPS),
        default=default,
        show_default=True,
        help="Most edges to walk.",
    )


def _types(help_text: str = "Only memories of these types.") -> click.Option:
    return option("--type", "types", multiple=True, type=one_of(MemoryType), help=help_text)


def _reason() -> click.Option:
    return option("--reason", required=True, metavar="TEXT", help="The reason, for the audit.")


def _since() -> tuple[click.Option, click.Option]:
    return (
        option("--since", type=MomentType(), help="Only what happened from then on: 2026-05-01."),
        option("--until", type=MomentType(), help="Only what happened before then."),
    )


def _concept() -> click.Option:
    return option("--concept", metavar="NAME", help="Only cases of a concept, or of a narrower one.")


_remember = agent_command(
    "remember",
    "Add a memory to an agent; the same text twice is one memory. TEXT - is standard input.",
    argument("text"),
    option(
        "--type",
        "kind",
        type=one_of(MemoryType),
        default=MemoryType.SEMANTIC.value,
        show_default=True,
        help="An event, a fact, a procedure, or a strategy.",
    ),
    option("--importance", type=_share, help="Its importance.  [default: computed from the text]"),
    option(
        "--expires", "expires_at", type=ExpiryType(), help="When it expires: 2d, or a date.  [default: never]"
    ),
    run="memory.ingestion:remember",
    examples=(
        'arbor remember Vega "The archive opens at nine."',
        'arbor remember Vega "The gate code is 4711." --expires 2d --importance 0.9',
    ),
)

_recall = agent_command(
    "recall",
    "Recall an agent's memories about QUERY, best first, with what each term adds to the score.",
    argument("query"),
    _limit(MAX_LIMIT, 10),
    option("--episodes", is_flag=True, help="Recall whole episodes, by their summaries."),
    _types(),
    *_since(),
    option("--session", default="", help="Only memories of one session."),
    _concept(),
    option("--episode", metavar="ID", help="Only memories of one episode."),
    option("--min-importance", type=_share, default=0.0, help="The least importance."),
    option("--min-trust", type=_share, default=0.0, help="The least trust."),
    run="memory.recall:recall_memories",
    details="It does not count as the agent's own recall. Terms: meaning, words, neighbours (what was said just before and after),"
    " association (what comes to mind with it), session, episode, speaker, time (the query names one), recency, importance,"
    " trust, activation (what is in mind), mood.",
    examples=(
        'arbor recall Vega "What did Nora plant in May?"',
        "arbor recall Vega quince -k 3 --json",
        'arbor recall Vega "what was decided" --type episodic --since 2026-05-01 --min-importance 0.6',
        'arbor recall Vega "the garden in spring" --episodes',
    ),
)

_theme = group(
    "theme",
    "Manage an agent's themes, which maintenance finds among its memories.",
    agent_command(
        "list",
        "List an agent's themes, the weightiest first.",
        _limit(200),
        run="memory.clusters:list_clusters",
        examples=("arbor memory theme list Vega",),
    ),
    agent_command(
        "show",
        "Show a theme with its memories and related themes.",
        argument("reference", metavar="THEME"),
        _limit(200),
        run="memory.clusters:show_cluster",
        examples=("arbor memory theme show Vega 51b09e3a",),
    ),
    agent_command(
        "name",
        "Name a theme. A named theme stays while it has a memory.",
        argument("reference", metavar="THEME"),
        argument("name"),
        run="memory.clusters:rename_cluster",
        examples=('arbor memory theme name Vega 51b09e3a "Evenings at the club"',),
    ),
    agent_command(
        "refresh",
        "Recompute a theme's centre, words and feeling from its memories.",
        argument("reference", metavar="THEME"),
        run="memory.clusters:refresh_cluster",
        examples=("arbor memory theme refresh Vega 51b09e3a",),
    ),
    agent_command(
        "assign",
        "Assign a memory to its themes now, before maintenance does.",
        argument("memory_id", metavar="ID"),
        option("--most", type=click.IntRange(1, 3), default=3, show_default=True, help="Most themes."),
        run="memory.clusters:assign_memory",
        examples=("arbor memory theme assign Vega 4cd01f7e",),
    ),
    agent_command(
        "tip",
        "Show the themes that TEXT brings to mind while no memory of them is clear.",
        argument("text"),
        run="memory.clusters:show_tip_of_the_tongue",
        examples=('arbor memory theme tip Vega "who was it that played"',),
    ),
)

_concepts = group(
    "concept",
    "Manage an agent's concepts.",
    agent_command(
        "list",
        "Show an agent's concepts as a tree, the broader above the narrower; or the memories of one.",
        option("--memories", "name", metavar="NAME", help="List the memories that are cases of a concept."),
        _limit(200),
        run="memory.concepts:list_concepts",
        examples=("arbor memory concept list Vega", "arbor memory concept list Vega --memories water"),
    ),
    agent_command(
        "link",
        "Link a memory to a concept by name; a missing concept is created.",
        argument("memory_id", metavar="ID"),
        argument("concept"),
        option("--strength", type=_share, default=1.0, show_default=True, help="Strength of the link."),
        run="memory.concepts:link_memory",
        examples=("arbor memory concept link Vega 4cd01f7e jazz --strength 0.8",),
    ),
    agent_command(
        "place",
        "Move a concept, with its narrower concepts, below another or to the top.",
        argument("concept"),
        option("--below", "parent", metavar="NAME", help="The broader concept.  [default: none]"),
        run="memory.concepts:place_concept",
        examples=(
            "arbor memory concept place Vega jazz --below music",
            "arbor memory concept place Vega jazz",
        ),
    ),
    agent_command(
        "merge",
        "Merge the concept GONE into KEPT: its memories, edges and narrower concepts.",
        argument("remaining", metavar="KEPT"),
        argument("gone"),
        run="memory.concepts:merge_into",
        examples=('arbor memory concept merge Vega jazz "jazz music"',),
    ),
)

_buffer = group(
    "buffer",
    "Manage an agent's buffer, whose items expire, or become memories when they matter.",
    agent_command(
        "list",
        "List the items in an agent's buffer.",
        option("--search", "text", metavar="TEXT", help="Only items about it, best first."),
        _limit(200, 50),
        run="memory.buffer:list_buffer",
        details="It does not count as an access.",
        examples=(
            "arbor memory buffer list Vega",
            'arbor memory buffer list Vega --search "what the ferryman said"',
        ),
    ),
    agent_command(
        "add",
        "Add an item to an agent's buffer; adding it again extends its time.",
        argument("text"),
        option(
            "--for",
            "lasts",
            type=DurationType(),
            default=LASTS,
            help=f"How long: 2h, 2d.  [default: {in_words(LASTS)}]",
        ),
        option("--importance", type=_share, help="Its importance.  [default: computed from the text]"),
        run="memory.buffer:add_item",
        examples=(
            'arbor memory buffer add Vega "The ferryman coughed."',
            'arbor memory buffer add Vega "The lock is being mended." --for 2d --importance 0.3',
        ),
    ),
    agent_command(
        "promote",
        "Make a memory of an item in the buffer, whatever its importance.",
        argument("item_id", metavar="ID"),
        run="memory.buffer:promote_item",
        examples=("arbor memory buffer promote Vega 4cd01f7e",),
    ),
)

_graph = group(
    "graph",
    "Query and edit the relations among memories, concepts, beliefs, aspects and goals.",
    agent_command(
        "relate",
        "Relate two nodes; each is ID, KIND:ID or concept:NAME.",
        argument("source"),
        argument("relation", type=one_of(Relation)),
        argument("target"),
        option("--weight", type=_share, default=1.0, show_default=True, help="How sure, or how similar."),
        option("--note", default="", help="The reason."),
        run="memory.graph:relate_nodes",
        examples=(
            "arbor memory graph relate Vega 4cd01f7e causes 91ee00b3",
            'arbor memory graph relate Vega 4cd01f7e supports belief:0c5512aa --weight 0.7 --note "seen twice"',
            "arbor memory graph relate Vega 4cd01f7e similar_to 91ee00b3 --weight 0.85",
        ),
    ),
    agent_command(
        "unrelate",
        "Remove the relations from one node to another, in that direction.",
        argument("source"),
        argument("target"),
        option("--relation", type=one_of(Relation), help="Only this relation."),
        run="memory.graph:unrelate_nodes",
        examples=("arbor memory graph unrelate Vega 4cd01f7e 91ee00b3 --relation causes",),
    ),
    agent_command(
        "causes",
        "Show the causes of a node, and their causes.",
        argument("node", metavar="ID"),
        _hops(MAX_HOPS),
        run="memory.graph:show_causes",
        examples=("arbor memory graph causes Vega 4cd01f7e",),
    ),
    agent_command(
        "evidence",
        "Show the evidence for a node, and the evidence for that.",
        argument("node", metavar="ID"),
        _hops(EVIDENCE_HOPS),
        run="memory.graph:show_evidence",
        examples=("arbor memory graph evidence Vega belief:0c5512aa",),
    ),
    agent_command(
        "connected",
        "Show every node within some edges of a node, along any relation, in both directions.",
        argument("node", metavar="ID"),
        _hops(2),
        option(
            "--relation",
            "relations",
            multiple=True,
            type=one_of(Relation),
            help="Along these relations only.",
        ),
        run="memory.graph:show_connected",
        examples=("arbor memory graph connected Vega concept:water --hops 2",),
    ),
    agent_command(
        "path",
        "Show a shortest path between two nodes.",
        argument("start"),
        argument("end"),
        option("--directed", is_flag=True, help="Only in the direction of relations."),
        run="memory.graph:show_path",
        details="Exit code 1 when there is none.",
        examples=("arbor memory graph path Vega 4cd01f7e concept:water",),
    ),
    agent_command(
        "contradictions",
        "Show contradictions: all that the agent knows, or about one node.",
        argument("node", metavar="[ID]", required=False),
        run="memory.graph:show_contradictions",
        examples=(
            "arbor memory graph contradictions Vega",
            "arbor memory graph contradictions Vega belief:0c5512aa",
        ),
    ),
)

_mind = group(
    "mind",
    "Inspect and rebuild an agent's working memory.",
    agent_command(
        "show",
        "Show an agent's working memory: its conversation partner, goals, thoughts, concerns and questions.",
        option("--prompt", is_flag=True, help="Show it as prompts have it."),
        run="memory.mind:show_mind",
        examples=("arbor memory mind show Vega",),
    ),
    agent_command(
        "active",
        "Show the memories and themes that recent recalls activated. Activation fades by itself.",
        _limit(MOST_KEPT),
        run="memory.mind:show_active",
        examples=("arbor memory mind active Vega",),
    ),
    agent_command(
        "rebuild",
        "Rebuild an agent's working memory from its last heartbeats and conversations; the old one is audited.",
        option("--dry-run", is_flag=True, help="Show the result, and change nothing."),
        run="memory.mind:rebuild",
        examples=("arbor memory mind rebuild Vega --dry-run",),
    ),
)

_code = group(
    "code",
    "Show the code snippets from an agent's conversations and messages.",
    agent_command(
        "list",
        "List an agent's code snippets, the latest first.",
        option("--about", help="Only snippets that share words with this text, best first."),
        option(
            "-n",
            "--limit",
            type=click.IntRange(1, MOST_CODE),
            default=20,
            show_default=True,
            help="Most results.",
        ),
        run="memory.listing:list_code",
        examples=('arbor memory code list Vega --about "tide table"',),
    ),
    agent_command(
        "show",
        "Show a code snippet as it was said.",
        argument("code_id", metavar="ID"),
        run="memory.listing:show_code",
        examples=("arbor memory code show Vega 0c5512aa",),
    ),
)

_memory = group(
    "memory",
    "Inspect and edit an agent's memory. ID is an id, or the last eight or more characters of one.",
    agent_command(
        "list",
        "List an agent's memories, the latest first.",
        _types(),
        option(
            "--status",
            type=one_of([*MemoryStatus, "all"]),
            default=MemoryStatus.ACTIVE.value,
            show_default=True,
            help="Only memories in this state.",
        ),
        option("--session", help="Only memories of one session."),
        option("--role", help="Only what one speaker said."),
        _concept(),
        option("--min-importance", type=_share, help="The least importance."),
        option("--min-trust", type=_share, help="The least trust."),
        *_since(),
        _limit(1000),
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
        _limit(MAX_LIMIT, 10),
        _types(),
        run="memory.listing:list_similar",
        details="It does not count as a recall. `arbor recall` shows what the agent would recall.",
        examples=(
            'arbor memory similar Vega "the river was frozen"',
            'arbor memory similar Vega "how to read a gauge" --type procedural -k 3',
        ),
    ),
    agent_command(
        "episodes",
        "List an agent's episodes, the latest first; or show one with its summary and memories.",
        argument("episode_id", metavar="[EPISODE]", required=False),
        _limit(1000),
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
        option("--importance", type=_share, help="Its importance.  [default: computed from the text]"),
        option(
            "--concept", "concepts", multiple=True, metavar="NAME", help="A concept that it is a case of."
        ),
        option("--context", default="", help="episodic: the situation."),
        option("--done", default="", help="episodic: the action."),
        option("--result", default="", help="episodic: the result."),
        option("--feeling", default="", help="episodic: the feeling, as joy or worry."),
        option("--valence", type=click.FloatRange(-1, 1), help="episodic: from -1, bad, to 1, good."),
        option("--confidence", type=_share, help="semantic, strategic: how sure."),
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
            type=_share,
            default=DEFAULT_SOURCE_TRUST,
            show_default=True,
            help="Trust in the source.",
        ),
        run="memory.creation:add_another_source",
        examples=("arbor memory source Vega 4cd01f7e --kind document --reference harbour-log --trust 0.9",),
    ),
    agent_command(
        "archive",
        "Exclude memories from recall. Nothing is lost: `arbor memory restore` reverts it.",
        argument("ids", metavar="ID...", nargs=-1, required=True),
        _reason(),
        run="memory.archive:archive_memories",
        examples=('arbor memory archive Vega 4cd01f7e --reason "it was about another ferry"',),
    ),
    agent_command(
        "restore",
        "Include archived memories in recall again.",
        argument("ids", metavar="ID...", nargs=-1, required=True),
        _reason(),
        option("--for-good", is_flag=True, help="Exempt them from forgetting from now on."),
        run="memory.archive:restore_memories",
        examples=('arbor memory restore Vega 4cd01f7e --reason "it matters after all" --for-good',),
    ),
    agent_command(
        "purge",
        "Delete archived memories with all that depends on them. It cannot be undone.",
        argument("ids", metavar="ID...", nargs=-1, required=True),
        _reason(),
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
    agent_command(
        "thoughts",
        "List an agent's last 50 thoughts in heartbeats and conversations, the latest first.",
        option(
            "-n",
            "--limit",
            type=click.IntRange(1, MOST_THOUGHTS),
            default=20,
            show_default=True,
            help="Most results.",
        ),
        run="memory.mind:list_thoughts",
        examples=("arbor memory thoughts Vega -n 5",),
    ),
    _theme,
    _concepts,
    _graph,
    _buffer,
    _mind,
    _code,
    tenant_command(
        "reembed",
        "Move agents to another embedding model or dimension, while they run.",
        option("--to", "name", metavar="MODEL", help="The model.  [default: ARBOR_EMBEDDING_MODEL]"),
        option(
            "--dimension",
            type=click.IntRange(min=1),
            help="The length of its vectors.  [default: ARBOR_EMBEDDING_DIMENSION]",
        ),
        option(
            "--agent",
            metavar="NAME",
            help="Only this agent.  [default: all that have another model]",
        ),
        option(
            "--batch",
            type=click.IntRange(min=1, max=10_000),
            default=REEMBED_BATCH,
            show_default=True,
            help="Memories to embed at once.",
        ),
        run="memory.maintenance:reembed",
        details="New vectors are computed beside the present ones and replace them all at once for each agent, so recall works"
        " throughout. Ctrl-C is safe: run it again, and it resumes. New agents get the model of the settings anyway; set"
        " ARBOR_EMBEDDING_MODEL and ARBOR_EMBEDDING_DIMENSION, restart, then run this.",
        examples=(
            "arbor memory reembed",
            "arbor memory reembed --to wordllama --dimension 128 --agent Vega",
            "arbor memory reembed --to tei/bge-small --dimension 384 --tenant acme",
        ),
    ),
    command(
        "health",
        "Show the state of maintenance over all tenants: its backlogs and each job's last run.",
        run="memory.maintenance:show_health",
        details="Exit code 1 when a person must act.",
        examples=("arbor memory health",),
    ),
)

COMMANDS = (_remember, _recall, _memory)
