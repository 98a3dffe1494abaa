"""The commands about the buffer, working memory and code snippets of an agent, and about maintenance."""

from __future__ import annotations

import click

from arbor.memory.activation import MAX_ACTIVE
from arbor.memory.buffer import DEFAULT_LIFETIME
from arbor.workflows.durations import format_duration
from config.cli.commands.options import (
    SHARE,
    limit_option,
)
from config.cli.kit.declarations import agent_command, argument, command, group, option, tenant_command
from config.cli.kit.values import DurationType

#: The most code snippets that are listed (`apps.memories.services.store.snippets.MAX_LIMIT`).
MAX_CODE = 100
#: Memories that are embedded at once (`apps.memories.services.embedding.reembed.BATCH`).
REEMBED_BATCH = 500

BUFFER = group(
    "buffer",
    "Manage an agent's buffer, whose items expire, or become memories when they matter.",
    agent_command(
        "list",
        "List the items in an agent's buffer.",
        option("--search", "text", metavar="TEXT", help="Only items about it, best first."),
        limit_option(200, 50),
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
            default=DEFAULT_LIFETIME,
            show_default=False,
            help=f"Its time in the buffer: 2h, 2d.  [default: {format_duration(DEFAULT_LIFETIME)}]",
        ),
        option("--importance", type=SHARE, help="Its importance.  [default: computed from the text]"),
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

MIND = group(
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
        "Show the memories and clusters that recent recalls activated. Activation fades by itself.",
        limit_option(MAX_ACTIVE),
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

CODE = group(
    "code",
    "Show the code snippets from an agent's conversations and messages.",
    agent_command(
        "list",
        "List an agent's code snippets, the latest first.",
        option("--about", help="Only snippets that share words with this text, best first."),
        limit_option(MAX_CODE, short="-n"),
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

UPKEEP = (
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
            help="Memories to embed at once.",
        ),
        option("--no-seed", is_flag=True, help="Do not save a seed of each agent first."),
        run="memory.maintenance:reembed",
        details="A seed of each agent is saved first, with its present vectors. New vectors are computed beside the present ones, and"
        " replace them all at once for each agent, so recall works throughout. Ctrl-C is safe: run it again, and it resumes. New"
        " agents get the model of the settings anyway; set ARBOR_EMBEDDING_MODEL and ARBOR_EMBEDDING_DIMENSION, restart, then"
        " run this.",
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
