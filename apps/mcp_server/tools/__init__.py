"""The tools of the server. A new feature adds its tool here."""

from __future__ import annotations

from apps.mcp_server.definitions import ToolDefinition, reading, writing
from apps.mcp_server.tools.agents import list_agents, show_health
from apps.mcp_server.tools.approvals import list_approvals
from apps.mcp_server.tools.capabilities import why_denied
from apps.mcp_server.tools.contacts import chat, end_conversation, message_agent, notify_agent
from apps.mcp_server.tools.documents import list_documents, read_document
from apps.mcp_server.tools.goals import add_goal, list_goals, update_goal
from apps.mcp_server.tools.graph import connect, show_connections
from apps.mcp_server.tools.heartbeats import list_heartbeats, trace_heartbeat
from apps.mcp_server.tools.memories import explain_recall, recall, remember
from apps.mcp_server.tools.proposals import decide_proposal, list_proposals
from apps.mcp_server.tools.search import search_knowledge, search_my_memories
from apps.mcp_server.tools.selves import show_self
from apps.mcp_server.tools.skills import list_skills, read_skill
from apps.mcp_server.tools.workflows import list_workflows, show_workflow_run, start_workflow

TOOLS: tuple[ToolDefinition, ...] = (
    reading(list_agents, "List agents"),
    reading(recall, "Recall memories"),
    reading(explain_recall, "Explain a recall"),
    reading(search_my_memories, "Search all sources"),
    reading(search_knowledge, "Search documents"),
    writing(remember, "Remember"),
    reading(show_connections, "Show connections"),
    writing(connect, "Connect memories", idempotent=True),
    reading(list_documents, "List documents"),
    reading(read_document, "Read a document"),
    reading(list_goals, "List goals"),
    writing(add_goal, "Add a goal"),
    writing(update_goal, "Update a goal", destructive=True),
    writing(chat, "Talk to an agent", asks_model=True),
    writing(end_conversation, "End a conversation", idempotent=True),
    writing(message_agent, "Send a message"),
    writing(notify_agent, "Notify of an event"),
    reading(list_heartbeats, "List heartbeats"),
    reading(trace_heartbeat, "Trace a heartbeat"),
    reading(show_self, "Show a self"),
    reading(list_proposals, "List proposals"),
    writing(decide_proposal, "Decide a proposal", destructive=True),
    reading(list_approvals, "List requests for approval"),
    reading(list_workflows, "List workflows"),
    writing(start_workflow, "Start a workflow", asks_model=True),
    reading(show_workflow_run, "Show a run of a workflow"),
    reading(why_denied, "Explain a denial"),
    reading(list_skills, "List skills"),
    reading(read_skill, "Read a skill"),
    reading(show_health, "Show health"),
)
