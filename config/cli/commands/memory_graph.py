"""The commands about clusters, concepts and the knowledge graph of an agent's memory."""

from __future__ import annotations

import click

from arbor.memory.relations import MAX_HOPS, Relation
from config.cli.commands.options import SHARE, hops_option, limit_option
from config.cli.kit.declarations import agent_command, argument, group, one_of, option

#: The most edges of a search for evidence (`apps.memories.services.graph.traversal.EVIDENCE_HOPS`).
EVIDENCE_HOPS = 2

CLUSTER = group(
    "cluster",
    "Manage an agent's clusters, which maintenance finds among its memories.",
    agent_command(
        "list",
        "List an agent's clusters, the most important first.",
        limit_option(200),
        run="memory.clusters:list_clusters",
        examples=("arbor memory cluster list Vega",),
    ),
    agent_command(
        "show",
        "Show a cluster with its memories and related clusters.",
        argument("reference", metavar="CLUSTER"),
        limit_option(200),
        run="memory.clusters:show_cluster",
        examples=("arbor memory cluster show Vega 51b09e3a",),
    ),
    agent_command(
        "name",
        "Name a cluster. A named cluster stays while it has a memory.",
        argument("reference", metavar="CLUSTER"),
        argument("name"),
        run="memory.clusters:rename_cluster",
        examples=('arbor memory cluster name Vega 51b09e3a "Evenings at the club"',),
    ),
    agent_command(
        "refresh",
        "Recompute a cluster's center, keywords and feeling from its memories.",
        argument("reference", metavar="CLUSTER"),
        run="memory.clusters:refresh_cluster",
        examples=("arbor memory cluster refresh Vega 51b09e3a",),
    ),
    agent_command(
        "assign",
        "Assign a memory to its clusters now, before maintenance does.",
        argument("memory_id", metavar="ID"),
        option(
            "--most",
            type=click.IntRange(1, 3),
            default=3,
            help="Maximum number of clusters.",
        ),
        run="memory.clusters:assign_memory",
        examples=("arbor memory cluster assign Vega 4cd01f7e",),
    ),
    agent_command(
        "tip",
        "Show the clusters that TEXT brings to mind while no memory of them is clear.",
        argument("text"),
        run="memory.clusters:show_partial_recall",
        examples=('arbor memory cluster tip Vega "who was it that played"',),
    ),
)

CONCEPT = group(
    "concept",
    "Manage an agent's concepts.",
    agent_command(
        "list",
        "Show an agent's concepts as a tree, the broader above the narrower; or the memories of one.",
        option("--memories", "name", metavar="NAME", help="List the memories that are cases of a concept."),
        limit_option(200),
        run="memory.concepts:list_concepts",
        examples=("arbor memory concept list Vega", "arbor memory concept list Vega --memories water"),
    ),
    agent_command(
        "link",
        "Link a memory to a concept by name; a missing concept is created.",
        argument("memory_id", metavar="ID"),
        argument("concept"),
        option("--strength", type=SHARE, default=1.0, help="Strength of the link."),
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

GRAPH = group(
    "graph",
    "Query and edit the relations among memories, concepts, beliefs, aspects and goals.",
    agent_command(
        "relate",
        "Relate two nodes; each is ID, KIND:ID or concept:NAME.",
        argument("source"),
        argument("relation", type=one_of(Relation)),
        argument("target"),
        option("--weight", type=SHARE, default=1.0, help="Confidence or similarity, 0 to 1."),
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
        hops_option(MAX_HOPS),
        run="memory.graph:show_causes",
        examples=("arbor memory graph causes Vega 4cd01f7e",),
    ),
    agent_command(
        "evidence",
        "Show the evidence for a node, and the evidence for that.",
        argument("node", metavar="ID"),
        hops_option(EVIDENCE_HOPS),
        run="memory.graph:show_evidence",
        examples=("arbor memory graph evidence Vega belief:0c5512aa",),
    ),
    agent_command(
        "connected",
        "Show every node within some edges of a node, along any relation, in both directions.",
        argument("node", metavar="ID"),
        hops_option(2),
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
        "Show all contradictions that the agent knows, or those of one node.",
        argument("node", metavar="[ID]", required=False),
        run="memory.graph:show_contradictions",
        examples=(
            "arbor memory graph contradictions Vega",
            "arbor memory graph contradictions Vega belief:0c5512aa",
        ),
    ),
)
