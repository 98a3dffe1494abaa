"""The commands about what agents work with: their active skills."""

from __future__ import annotations

from config.cli.kit.declarations import agent_command, argument, group

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
        details="Skills stand whole in each prompt; those that do not fit the window of the agent's models are refused with their"
        " sizes.",
        examples=("arbor agent skill set Vega decision-memo cited-answers", "arbor agent skill set Vega"),
    ),
)
