"""The commands about the active skills of agents and their subscriptions to signals."""

from __future__ import annotations

from config.cli.kit.declarations import agent_command, argument, group, option

SKILL = group(
    "skill",
    "Show and choose the active skills of agents.",
    agent_command(
        "list",
        "List the active skills of an agent, in the order of its prompts.",
        run="skills:list_active",
        examples=("arbor agent skill list Vega",),
    ),
    agent_command(
        "set",
        "Choose the skills that an agent follows, at most five, from its next prompt on. Without a name: none.",
        argument("names", nargs=-1, metavar="[SKILL]..."),
        run="skills:set_active",
        details="Each prompt includes skills whole; those that do not fit the window of the agent's models are refused with their"
        " sizes.",
        examples=("arbor agent skill set Vega decision-memo cited-answers", "arbor agent skill set Vega"),
    ),
)

SUBSCRIPTION = group(
    "subscription",
    "Subscribe agents to signals, which their next prompt includes.",
    agent_command(
        "list",
        "List the subscriptions of an agent.",
        run="subscriptions:list_all",
        examples=("arbor agent subscription list Vega",),
    ),
    agent_command(
        "add",
        "Subscribe an agent to signals: of documents and workflows, of a peer, or of itself.",
        argument("names", nargs=-1, required=True, metavar="SIGNAL..."),
        option("--peer", metavar="NAME", help="Signals about this agent."),
        option("--own", is_flag=True, help="Signals about the agent itself."),
        run="subscriptions:add",
        details="SIGNAL is a name, or a pattern such as `memory.goal_*`; `arbor signals --names` lists all. Each prompt has the signals since the"
        " prompt before, counted by name and source.",
        examples=(
            'arbor agent subscription add Vega "memory.goal_*" --peer Lyra',
            "arbor agent subscription add Vega memory.proposal_created --own",
        ),
    ),
    agent_command(
        "remove",
        "End a subscription of an agent.",
        argument("subscription_id", metavar="ID"),
        run="subscriptions:remove",
        examples=("arbor agent subscription remove Vega 3f2a9c01",),
    ),
)
