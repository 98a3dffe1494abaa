"""All operations of a client, grouped by the things they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arbor_client.agents import Agents
from arbor_client.approvals import Approvals, Trust
from arbor_client.audit import Audit
from arbor_client.beliefs import Aspects, Beliefs
from arbor_client.boundaries import Boundaries
from arbor_client.capabilities import Capabilities
from arbor_client.contacts import Channels, Inbox, Outbox
from arbor_client.conversations import Conversations
from arbor_client.documents import Documents
from arbor_client.goals import Goals, Plans
from arbor_client.graph import Graph
from arbor_client.heartbeats import Heartbeats
from arbor_client.hooks import Hooks
from arbor_client.identities import Identities
from arbor_client.memories import Memories
from arbor_client.minds import Clusters, Episodes, Minds
from arbor_client.policies import Policies
from arbor_client.providers import Providers
from arbor_client.search import Search
from arbor_client.seeds import Seeds
from arbor_client.self_history import SelfHistory
from arbor_client.selves import Preferences, Proposals, Selves
from arbor_client.signals import Signals, Webhooks
from arbor_client.skills import Skills
from arbor_client.subscriptions import Subscriptions
from arbor_client.templates import Templates
from arbor_client.tenants import Members, TenantGroup, Tokens
from arbor_client.tiers import Tiers
from arbor_client.tools import Tools, ToolServers
from arbor_client.workflows import Workflows

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


class Catalogue[C: (Arbor, AsyncArbor)]:
    """The groups of operations, for the client `C`."""

    def __init__(self, client: C) -> None:
        self.agents: Agents[C] = Agents(client)
        self.approvals: Approvals[C] = Approvals(client)
        self.aspects: Aspects[C] = Aspects(client)
        self.audit: Audit[C] = Audit(client)
        self.beliefs: Beliefs[C] = Beliefs(client)
        self.boundaries: Boundaries[C] = Boundaries(client)
        self.capabilities: Capabilities[C] = Capabilities(client)
        self.channels: Channels[C] = Channels(client)
        self.clusters: Clusters[C] = Clusters(client)
        self.conversations: Conversations[C] = Conversations(client)
        self.documents: Documents[C] = Documents(client)
        self.episodes: Episodes[C] = Episodes(client)
        self.goals: Goals[C] = Goals(client)
        self.graph: Graph[C] = Graph(client)
        self.heartbeats: Heartbeats[C] = Heartbeats(client)
        self.hooks: Hooks[C] = Hooks(client)
        self.identities: Identities[C] = Identities(client)
        self.inbox: Inbox[C] = Inbox(client)
        self.members: Members[C] = Members(client)
        self.memories: Memories[C] = Memories(client)
        self.minds: Minds[C] = Minds(client)
        self.outbox: Outbox[C] = Outbox(client)
        self.plans: Plans[C] = Plans(client)
        self.policies: Policies[C] = Policies(client)
        self.preferences: Preferences[C] = Preferences(client)
        self.proposals: Proposals[C] = Proposals(client)
        self.providers: Providers[C] = Providers(client)
        self.search: Search[C] = Search(client)
        self.self_history: SelfHistory[C] = SelfHistory(client)
        self.seeds: Seeds[C] = Seeds(client)
        self.selves: Selves[C] = Selves(client)
        self.signals: Signals[C] = Signals(client)
        self.skills: Skills[C] = Skills(client)
        self.subscriptions: Subscriptions[C] = Subscriptions(client)
        self.templates: Templates[C] = Templates(client)
        self.tenant: TenantGroup[C] = TenantGroup(client)
        self.tiers: Tiers[C] = Tiers(client)
        self.tokens: Tokens[C] = Tokens(client)
        self.tool_servers: ToolServers[C] = ToolServers(client)
        self.tools: Tools[C] = Tools(client)
        self.trust: Trust[C] = Trust(client)
        self.webhooks: Webhooks[C] = Webhooks(client)
        self.workflows: Workflows[C] = Workflows(client)
