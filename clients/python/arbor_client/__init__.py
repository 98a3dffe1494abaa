"""The Python client of Arbor.

`Arbor` blocks, `AsyncArbor` awaits; both have the same operations. Values that are not exported here are in the modules of
their groups, such as `arbor_client.documents`.
"""

from arbor_client.agents import Agent, Destruction, SentMessage
from arbor_client.audit import AuditEvent, ChainFault, ChainHead, ChainReport
from arbor_client.beliefs import Aspect, Belief
from arbor_client.boundaries import Boundary, BoundaryList, BoundaryMatch, ChangedBoundary
from arbor_client.calls import UNCHANGED, Unchanged
from arbor_client.clients import Arbor, AsyncArbor
from arbor_client.contacts import Channel, Message, NewChannel
from arbor_client.conversations import AnsweredTurn, EndedConversation, Turn
from arbor_client.errors import (
    ArborClientError,
    Conflict,
    Forbidden,
    Missing,
    Refused,
    ServerFailed,
    TokenInvalid,
    TooManyRequests,
    Unprocessable,
    Unreachable,
    UnreadableAnswer,
)
from arbor_client.goals import Goal, NewStep, Plan, PlanStep
from arbor_client.graph import (
    Contradiction,
    Contradictions,
    Edge,
    FoundNode,
    FoundNodes,
    Node,
    RemovedRelations,
)
from arbor_client.heartbeats import (
    CallTrace,
    Difference,
    Heartbeat,
    HeartbeatTrace,
    Percept,
    Replay,
    RequestedHeartbeat,
    Step,
)
from arbor_client.hooks import Delivery, Hook, HookSecret, MappingTrial
from arbor_client.memories import (
    Changed,
    Memory,
    MemoryDetails,
    Neighbor,
    Recall,
    Recalled,
    Remembered,
    SimilarMemory,
)
from arbor_client.minds import (
    BufferItem,
    Cluster,
    ClusterDetails,
    ClusterMemory,
    Concept,
    Episode,
    EpisodeDetails,
    EpisodeMemory,
    Snippet,
    Thought,
    WorkingMemory,
)
from arbor_client.policies import DailyUsage, ModelCall, Policy
from arbor_client.providers import DefaultModel, Provider
from arbor_client.selves import Drive, Experience, InnerState, Peer, Preference, Proposal
from arbor_client.signals import NewWebhook, Signal, SignalKind, SignalPage, Webhook
from arbor_client.streams import Event
from arbor_client.templates import CheckedTemplate, Template, TemplateDetails
from arbor_client.tenants import ApiToken, Limits, Member, NewApiToken, Tenant, Token
from arbor_client.tools import RefreshedServer, Tool, ToolDetails, ToolServer

__all__ = [
    "UNCHANGED",
    "Agent",
    "AnsweredTurn",
    "ApiToken",
    "Arbor",
    "ArborClientError",
    "Aspect",
    "AsyncArbor",
    "AuditEvent",
    "Belief",
    "Boundary",
    "BoundaryList",
    "BoundaryMatch",
    "BufferItem",
    "CallTrace",
    "ChainFault",
    "ChainHead",
    "ChainReport",
    "Changed",
    "ChangedBoundary",
    "Channel",
    "CheckedTemplate",
    "Cluster",
    "ClusterDetails",
    "ClusterMemory",
    "Concept",
    "Conflict",
    "Contradiction",
    "Contradictions",
    "DailyUsage",
    "DefaultModel",
    "Delivery",
    "Destruction",
    "Difference",
    "Drive",
    "Edge",
    "EndedConversation",
    "Episode",
    "EpisodeDetails",
    "EpisodeMemory",
    "Event",
    "Experience",
    "Forbidden",
    "FoundNode",
    "FoundNodes",
    "Goal",
    "Heartbeat",
    "HeartbeatTrace",
    "Hook",
    "HookSecret",
    "InnerState",
    "Limits",
    "MappingTrial",
    "Member",
    "Memory",
    "MemoryDetails",
    "Message",
    "Missing",
    "ModelCall",
    "Neighbor",
    "NewApiToken",
    "NewChannel",
    "NewStep",
    "NewWebhook",
    "Node",
    "Peer",
    "Percept",
    "Plan",
    "PlanStep",
    "Policy",
    "Preference",
    "Proposal",
    "Provider",
    "Recall",
    "Recalled",
    "RefreshedServer",
    "Refused",
    "Remembered",
    "RemovedRelations",
    "Replay",
    "RequestedHeartbeat",
    "SentMessage",
    "ServerFailed",
    "Signal",
    "SignalKind",
    "SignalPage",
    "SimilarMemory",
    "Snippet",
    "Step",
    "Template",
    "TemplateDetails",
    "Tenant",
    "Thought",
    "Token",
    "TokenInvalid",
    "TooManyRequests",
    "Tool",
    "ToolDetails",
    "ToolServer",
    "Turn",
    "Unchanged",
    "Unprocessable",
    "Unreachable",
    "UnreadableAnswer",
    "Webhook",
    "WorkingMemory",
]
