"""The commands about seeds."""

from __future__ import annotations

import click

from config.cli.kit.declarations import agent_command, argument, group, one_of, option, tenant_command

#: The groups of `apps.fleet.seeds.sections.SeedGroup`, which a test compares with these.
GROUPS = ("profile", "self", "memories", "goals", "state", "policy")

_DRY_RUN = option("--dry-run", is_flag=True, help="Report what would be written, and write nothing.")
_TRUST = option("--trust-foreign", is_flag=True, help="Accept a seed that another installation has signed.")
_WITHOUT_VECTORS = option(
    "--without-vectors",
    is_flag=True,
    help="Leave out the vectors of memories: a smaller file; they are computed again after an import.",
)

_seed = group(
    "seed",
    "Export, import, restore, fork, compare and merge agents. SEED is a file, or the id of a saved seed.",
    agent_command(
        "export",
        "Write an agent to a file, signed by its key and by the System Authority.",
        argument("file", type=click.Path(dir_okay=False)),
        _WITHOUT_VECTORS,
        run="seeds:export",
        examples=("arbor seed export Vega vega.seed",),
    ),
    tenant_command(
        "verify",
        "Check a seed's digests and signatures, and show its manifest. Nothing is written.",
        argument("seed"),
        run="seeds:verify",
        examples=("arbor seed verify vega.seed",),
    ),
    tenant_command(
        "import",
        "Create an agent from a seed, with an identity of its own. Nothing is granted to it.",
        argument("seed"),
        option("--name", default="", help="The name of the new agent.  [default: that of the seed]"),
        _TRUST,
        _DRY_RUN,
        run="seeds:import_one",
        examples=("arbor seed import vega.seed --name Lyra",),
    ),
    agent_command(
        "restore",
        "Bring an agent back to the state of a seed of its own. A seed of its state before is saved first.",
        argument("seed"),
        option(
            "--skip",
            multiple=True,
            type=one_of(GROUPS),
            help="Leave this part of the agent as it is. Can be repeated.",
        ),
        _DRY_RUN,
        run="seeds:restore",
        examples=("arbor seed restore Vega vega.seed --skip goals --dry-run",),
    ),
    agent_command(
        "fork",
        "Create another agent with the same memories, goals and self, and an identity of its own.",
        argument("name"),
        run="seeds:fork",
        examples=("arbor seed fork Vega Lyra",),
    ),
    tenant_command(
        "diff",
        "Compare two seeds, of one agent or of two.",
        argument("first"),
        argument("second"),
        run="seeds:diff",
        examples=("arbor seed diff monday.seed friday.seed",),
    ),
    agent_command(
        "merge",
        "Merge what another agent learned into an agent: knowledge as memories, beliefs and preferences as proposals.",
        argument("seed"),
        _TRUST,
        _DRY_RUN,
        run="seeds:merge",
        examples=("arbor seed merge Vega lyra.seed --dry-run",),
    ),
    agent_command(
        "save",
        "Save a seed of an agent in the database.",
        run="seeds:save",
        examples=("arbor seed save Vega",),
    ),
    tenant_command(
        "list",
        "List the saved seeds of a tenant, or of one agent, destroyed agents included.",
        option("--agent", metavar="NAME", help="Only seeds of agents with this name."),
        run="seeds:list_saved",
        examples=("arbor seed list --agent Vega",),
    ),
    tenant_command(
        "delete",
        "Delete a saved seed.",
        argument("seed_id", metavar="ID", type=click.UUID),
        run="seeds:delete",
        examples=("arbor seed delete 019c…",),
    ),
    details="A seed is a whole agent in one file, without keys, secrets, grants and approvals. docs/how-to/seeds.md.",
)

COMMANDS = (_seed,)
