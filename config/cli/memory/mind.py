"""Show and rebuild an agent's working memory, and show its latest thoughts and active memories."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from apps.agents.models import AgentState
from apps.heartbeats.services.reports.thoughts import thoughts_of
from apps.heartbeats.services.working_memory import RebuiltWorkingMemory, rebuild_working_memory
from apps.memories.services.graph.relations import labels_of
from apps.memories.services.recall.activation import activated_clusters, activated_memories
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.memory.relations import GraphNode, GraphNodeKind
from arbor.quotations import counted
from config.cli.kit.columns import OutputColumn, listing
from config.cli.kit.declarations import Output
from config.cli.kit.output import cut, format_relative_time, short, table
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction

THOUGHT_COLUMNS = (
    OutputColumn("at", "when", cell=format_relative_time),
    OutputColumn("origin", "at a"),
    OutputColumn("text", "thought"),
    OutputColumn("id"),
)


@in_agent_transaction
def show_mind(agent: ChosenAgent, *, prompt: bool) -> Output:
    """Show an agent's working memory: its conversation partner, goals, thoughts, concerns and questions."""
    memory = WorkingMemory.model_validate(
        AgentState.objects.values_list("working_memory", flat=True).get(agent_id=agent.id)
    )
    value = {"agent": agent.name, "tenant": agent.tenant_slug, **memory.model_dump(mode="json")}
    if not prompt:
        return Output(value, text=_table(memory))
    text = memory.to_prompt_text()
    return Output({**value, "prompt": text}, text=escape(text))


@in_agent_transaction
def rebuild(agent: ChosenAgent, *, dry_run: bool) -> Output:
    """Rebuild an agent's working memory from its last heartbeats and conversations; the old one is audited."""
    rebuilt_memory = rebuild_working_memory(agent_id=agent.id, actor=actor(), dry_run=dry_run)
    value = {
        "agent": agent.name,
        "dry_run": dry_run,
        "heartbeats": rebuilt_memory.heartbeats,
        "turns": rebuilt_memory.turns,
        "before": rebuilt_memory.before.model_dump(mode="json"),
        "after": rebuilt_memory.after.model_dump(mode="json"),
    }
    return Output(value, text=_describe_rebuilt(rebuilt_memory, dry_run))


@in_agent_transaction
def list_thoughts(agent: ChosenAgent, *, limit: int) -> Output:
    """List an agent's thoughts in heartbeats and conversations, the latest first."""
    return listing(
        "thoughts",
        thoughts_of(agent_id=agent.id, limit=limit),
        THOUGHT_COLUMNS,
        about={"agent": agent.name},
        empty=f"{escape(agent.name)} has not thought anything yet.",
    )


def _table(memory: WorkingMemory) -> Any:
    rows = [("talking with", memory.current_human)] if memory.current_human else []
    rows += [("works towards", title) for title in memory.active_goals]
    rows += [
        ("thought", f"{cut(thought.text, 300)} ({format_relative_time(thought.at)})")
        for thought in memory.thoughts
    ]
    rows += [("concern", line) for line in memory.concerns]
    rows += [("curious about", line) for line in memory.curiosity]
    rows.append(("engagement", f"{memory.engagement:.2f} of 1"))
    rows.append(("questions since the last consolidation", str(memory.talked)))
    return table(("what", ""), rows)


def _describe_rebuilt(rebuilt_memory: RebuiltWorkingMemory, dry_run: bool) -> Any:
    head = "It would be" if dry_run else "It is"
    after = rebuilt_memory.after
    return (
        f"{head} rebuilt from {counted(rebuilt_memory.heartbeats, 'heartbeat')} and {counted(rebuilt_memory.turns, 'turn')}:"
        f" {counted(len(after.thoughts), 'thought')}, {counted(len(after.concerns), 'concern')},"
        f" {counted(len(after.curiosity), 'question')}, engagement {after.engagement:.2f}"
        f" (before: {len(rebuilt_memory.before.thoughts)}, {len(rebuilt_memory.before.concerns)}, {len(rebuilt_memory.before.curiosity)},"
        f" {rebuilt_memory.before.engagement:.2f})."
    )


@in_agent_transaction
def show_active(agent: ChosenAgent, *, limit: int) -> Output:
    """Show the memories and clusters that recent recalls activated. Activation fades by itself."""
    active = activated_memories(agent_id=agent.id, limit=limit)
    texts = labels_of(agent.id, [memory.id for memory in active], [GraphNodeKind.MEMORY])
    clusters = activated_clusters(agent_id=agent.id)
    memories = [(memory, texts.get(GraphNode(GraphNodeKind.MEMORY, memory.id), "")) for memory in active]
    value = {
        "agent": agent.name,
        "memories": [
            {"id": memory.id, "level": round(memory.level, 4), "text": text} for memory, text in memories
        ],
        "clusters": [
            {"id": cluster.id, "name": cluster.name, "activation": round(cluster.activation, 4)}
            for cluster in clusters
        ],
    }
    text: Any = table(
        ("activation", "id", "memory or cluster"),
        [(f"{cluster.activation:.2f}", short(cluster.id), f"cluster: {cluster.name}") for cluster in clusters]
        + [(f"{memory.level:.2f}", short(memory.id), cut(text)) for memory, text in memories],
    )
    return Output(
        value,
        text=text if active or clusters else "Nothing is active: the agent has not recalled anything lately.",
    )
