"""The sidebar's sections, and the pages inside each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from apps.console.access import access_of, is_platform_operator
from apps.console.badges import badges_of

type Permission = Callable[[HttpRequest], bool]


def in_tenant(request: HttpRequest) -> bool:
    """Return whether the person works in a tenant."""
    return access_of(request) is not None


def in_tenant_or_above(request: HttpRequest) -> bool:
    """Return whether the person works in a tenant or runs the installation."""
    return in_tenant(request) or is_platform_operator(request)


def anybody(_request: HttpRequest) -> bool:
    """Allow everybody who is signed in."""
    return True


@dataclass(frozen=True, kw_only=True)
class PageLink:
    """A page of a section. The title of a list is the plural of its model."""

    title: str
    #: The URL name of the page: `app_model_changelist` for lists.
    url_name: str
    permission: Permission = in_tenant
    #: Further URL names that belong to the page, beside those of the rows of a list.
    inner: frozenset[str] = frozenset()

    def is_at(self, url_name: str) -> bool:
        """Return whether a URL name belongs to the page."""
        listed = self.url_name.removesuffix("_changelist")
        is_row = listed != self.url_name and url_name in (
            f"{listed}_change",
            f"{listed}_add",
            f"{listed}_delete",
        )
        return is_row or url_name == self.url_name or url_name in self.inner


@dataclass(frozen=True, kw_only=True)
class Section:
    """An entry of the sidebar, which leads to the first of its pages that the person may open."""

    title: str
    icon: str
    pages: tuple[PageLink, ...]

    def allowed(self, request: HttpRequest) -> list[PageLink]:
        """Return the pages of the section that the person may open."""
        return [page for page in self.pages if page.permission(request)]


def _page(title: str, url_name: str, permission: Permission = in_tenant, *inner: str) -> PageLink:
    return PageLink(title=title, url_name=url_name, permission=permission, inner=frozenset(inner))


def _list(title: str, model: str, permission: Permission = in_tenant, *inner: str) -> PageLink:
    return _page(title, f"{model}_changelist", permission, *inner)


#: The sections, at most a dozen. A new page is added to the section of its subject.
SECTIONS: tuple[Section, ...] = (
    Section(
        title="Fleet",
        icon="monitor_heart",
        pages=(_page("Fleet", "index", anybody), _page("First steps", "first-steps", anybody)),
    ),
    Section(
        title="Agents",
        icon="smart_toy",
        pages=(
            _list(
                "Agents",
                "agents_agent",
                in_tenant,
                "agent-chat",
                "agent-capabilities",
                "agent-trust",
                "agent-skills",
                "agent-documents",
                "agent-subscriptions",
            ),
            _list("Agent states", "agents_agentstate"),
            _list("Heartbeat schedules", "agents_heartbeatschedule"),
            _list("Policies", "agents_agentpolicy"),
            _list("Trust scores", "authority_trustscore"),
            _list("Tier changes", "authority_tierchange"),
            _list("Percepts", "agents_percept"),
            _list("Agent keys", "agents_agentkey"),
            _list("Endorsements", "agents_agentendorsement"),
            _list("Requested capabilities", "agents_requestedcapability"),
            _list("Capabilities", "authority_capabilitygrant"),
            _list("Capability uses", "authority_capabilityuse"),
            _list("Seeds", "fleet_savedseed", in_tenant, "seed-make", "seed-act"),
            _list("Trust presets", "authority_agenttrust"),
            _list("Trust rules", "authority_moderule"),
            _list("Subscriptions", "knowledge_signalsubscription"),
            _list("Tools", "tools_tool"),
            _list("Tool servers", "tools_toolserver"),
        ),
    ),
    Section(
        title="Conversations",
        icon="forum",
        pages=(
            _list("Conversations", "contacts_chatsession"),
            _list("Turns of conversations", "contacts_chatmessage"),
            _page("Inbox", "inbox"),
            _list("Outbox messages", "contacts_outboxmessage"),
            _list("Channels", "contacts_channel"),
            _list("Webhooks", "contacts_signalwebhook", in_tenant, "webhook-rotate"),
            _list("Hooks", "contacts_hook", in_tenant, "hook-edit", "hook-rotate"),
            _list("Deliveries", "contacts_hookdelivery"),
        ),
    ),
    Section(
        title="Memory",
        icon="neurology",
        pages=(
            _list("Memories", "memories_memory"),
            _page("Recall", "recall"),
            _page("Search", "search-sources"),
            _page("Knowledge graph", "graph"),
            _list("Documents", "knowledge_document"),
            _list("Categories of agents", "knowledge_agentknowledge"),
            _page("Memory quotas", "memory-quotas"),
            _list("Pins", "memories_pin"),
            _list("Episodes", "memories_episode"),
            _list("Clusters", "memories_cluster"),
            _list("Concepts", "memories_concept"),
            _list("Relations", "memories_edge"),
            _list("Buffer items", "memories_bufferitem"),
            _list("Code snippets", "memories_codesnippet"),
            _list("Memory accesses", "memories_memoryaccess"),
            _list("Practices", "memories_practice"),
            _list("Activations", "memories_activation"),
        ),
    ),
    Section(
        title="Goals",
        icon="flag",
        pages=(
            _list("Goals", "goals_goal"),
            _list("Plans", "goals_plan"),
            _list("Steps", "goals_planstep"),
            _list("Intents", "goals_intent"),
            _list("Progress notes", "goals_progressnote"),
            _list("Goal memories", "goals_goalmemorylink"),
            _list("Satisfactions", "goals_satisfaction"),
            _list("Workflows", "workflows_workflow", in_tenant, "workflow-edit"),
            _list("Workflow runs", "workflows_workflowrun"),
            _list("Workflow steps", "workflows_workflowstep"),
            _list("Workflow versions", "workflows_workflowversion"),
        ),
    ),
    Section(
        title="Self and proposals",
        icon="fingerprint",
        pages=(
            _list("Proposals", "selves_proposal"),
            _list("Approvals", "authority_actionapproval"),
            _list("Beliefs", "selves_belief"),
            _list("Aspects", "selves_identityaspect"),
            _list("Preferences", "selves_preference"),
            _list("Boundaries", "selves_boundary"),
            _page("Self versions", "self-versions"),
            _list("Self history", "selves_selfchange"),
            _list("Evidence", "selves_beliefevidence"),
            _list("Calibrations", "selves_proposalcalibration"),
            _list("Experiences", "selves_experience"),
            _list("Peers", "selves_peermodel"),
        ),
    ),
    Section(
        title="Heartbeats",
        icon="ecg_heart",
        pages=(_list("Heartbeats", "heartbeats_heartbeat"), _page("Signals", "signals")),
    ),
    Section(
        title="Model calls",
        icon="payments",
        pages=(
            _page("Usage and budgets", "model-usage"),
            _page("Models", "models"),
            _list("Model calls", "calls_externalcall"),
            _list("Ledger entries", "calls_ledgerentry"),
            _list("Daily usage", "calls_dailyusage"),
            _list("Token ratios", "calls_tokenratio"),
            _list("Keys of providers", "calls_providerkey"),
        ),
    ),
    Section(
        title="Operations",
        icon="engineering",
        pages=(
            _page("Operations", "operations", in_tenant_or_above),
            _list("Processes", "heartbeats_process", in_tenant_or_above),
            _list("Memories in upkeep", "memories_upkeep"),
            _list("Minds", "memories_mind"),
            _list("Next embeddings", "memories_nextembedding"),
            _list("Jobs", "memories_jobrun", is_platform_operator),
            _list("Embedder faults", "memories_embedderfault", is_platform_operator),
        ),
    ),
    Section(
        title="Templates and skills",
        icon="genetics",
        pages=(
            _list("Templates", "agents_template"),
            _page("Template editor", "template-edit"),
            _list("Built-in templates", "agents_builtintemplate"),
            _page("Skills", "skills", in_tenant, "skill-edit"),
            _list("Own skills", "knowledge_skill"),
            _list("Global skills", "knowledge_globalskill"),
            _list("Active skills", "knowledge_agentskill"),
            _list("Versions of skills", "knowledge_skillversion"),
            _list("Versions of global skills", "knowledge_globalskillversion"),
        ),
    ),
    Section(
        title="Members and sessions",
        icon="group",
        pages=(
            _list("Members", "tenants_membership"),
            _list("API tokens", "access_apitoken"),
            _list("Idempotent requests", "access_idempotentrequest"),
            _page("Your sessions", "own-sessions", anybody),
            _list("Tenants", "tenants_tenant", is_platform_operator),
            _list("Users", "tenants_user", is_platform_operator),
        ),
    ),
    Section(
        title="Audit",
        icon="history",
        pages=(
            _list("Audit events", "audit_auditevent"),
            _page("Audit chain", "audit-chain"),
            _list("Platform events", "audit_platformevent", is_platform_operator),
        ),
    ),
)


def _url_name(request: HttpRequest) -> str:
    match = request.resolver_match
    return str(match.url_name) if match is not None else ""


def _items(request: HttpRequest) -> Iterator[dict[str, Any]]:
    current, badges = _url_name(request), badges_of(request)
    for section in SECTIONS:
        pages = section.allowed(request)
        if not pages:
            continue
        item = {
            "title": section.title,
            "icon": section.icon,
            "link": reverse(f"admin:{pages[0].url_name}"),
            "active": any(page.is_at(current) for page in section.pages),
        }
        if badge := "".join(badges.get(page.url_name, "") for page in pages):
            item["badge"] = badge
        yield item


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the only group of the sidebar: the sections with a page that the person may open."""
    return [{"items": list(_items(request))}]


@dataclass(frozen=True, kw_only=True)
class SectionTabs:
    """The links between the pages of a section."""

    title: str
    #: [(title, address, whether it is the current page, badge)].
    tabs: list[tuple[str, str, bool, str]]


def section_tabs(request: HttpRequest) -> SectionTabs | None:
    """Return the tabs of the section of the current page; None without a section, or if it has no other page."""
    current = _url_name(request)
    for section in SECTIONS:
        if any(page.is_at(current) for page in section.pages):
            pages = section.allowed(request)
            if len(pages) < 2:
                return None
            badges = badges_of(request)
            tabs = [
                (
                    page.title,
                    reverse(f"admin:{page.url_name}"),
                    page.is_at(current),
                    badges.get(page.url_name, ""),
                )
                for page in pages
            ]
            return SectionTabs(title=section.title, tabs=tabs)
    return None
