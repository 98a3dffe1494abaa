"""The sidebar's links to pages, by subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.urls import reverse_lazy

from apps.console.access import access_of, is_platform_operator
from apps.contacts.services.inbox import COUNTED_AT_MOST, count_unread


def _in_tenant(request: HttpRequest) -> bool:
    return access_of(request) is not None


def _in_tenant_or_above(request: HttpRequest) -> bool:
    return _in_tenant(request) or is_platform_operator(request)


def _item(
    title: str, icon: str, page: str, permission: Callable[[HttpRequest], bool] = _in_tenant
) -> dict[str, Any]:
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{page}"),
        "permission": permission,
    }


def _inbox(request: HttpRequest) -> dict[str, Any]:
    """Return the link to the inbox, with the number of unread messages."""
    item = _item("Inbox", "inbox", "inbox")
    unread = _unread(request) if _in_tenant(request) else 0
    if unread:
        item["badge"] = f"{unread - 1}+" if unread == COUNTED_AT_MOST else str(unread)
    return item


def _unread(request: HttpRequest) -> int:
    counted: int | None = getattr(
        request, "unread", None
    )  # set by `BoundedPaginator`, which counts both in one query
    return count_unread() if counted is None else counted


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups of links; Unfold hides those that the user may not open."""
    return [
        {
            "items": [
                {"title": "Fleet", "icon": "monitor_heart", "link": reverse_lazy("admin:index")},
                _item("Agents", "smart_toy", "agents_agent_changelist"),
                _item("Heartbeats", "ecg_heart", "heartbeats_heartbeat_changelist"),
                _item("Conversations", "forum", "contacts_chatsession_changelist"),
            ]
        },
        {
            "title": "Contact",
            "items": [
                _inbox(request),
                _item("Outbox messages", "outgoing_mail", "contacts_outboxmessage_changelist"),
                _item("Channels", "alternate_email", "contacts_channel_changelist"),
            ],
        },
        {
            "title": "Memory",
            "items": [
                _item("Memories", "neurology", "memories_memory_changelist"),
                _item("Episodes", "auto_stories", "memories_episode_changelist"),
                _item("Clusters", "bubble_chart", "memories_cluster_changelist"),
                _item("Concepts", "account_tree", "memories_concept_changelist"),
                _item("Relations", "hub", "memories_edge_changelist"),
                _item("Buffer items", "hourglass_top", "memories_bufferitem_changelist"),
                _item("Code snippets", "code", "memories_codesnippet_changelist"),
                _item("Memories in upkeep", "cleaning_services", "memories_upkeep_changelist"),
                _item("Minds", "psychology", "memories_mind_changelist"),
            ],
        },
        {
            "title": "Mind",
            "items": [
                _item("Beliefs", "lightbulb", "selves_belief_changelist"),
                _item("Aspects", "fingerprint", "selves_identityaspect_changelist"),
                _item("Preferences", "tune", "selves_preference_changelist"),
                _item("Proposals", "ballot", "selves_proposal_changelist"),
                _item("Self history", "difference", "selves_selfchange_changelist"),
                _item("Evidence", "balance", "selves_beliefevidence_changelist"),
                _item("Boundaries", "shield", "selves_boundary_changelist"),
                _item("Experiences", "school", "selves_experience_changelist"),
                _item("Peers", "group", "selves_peermodel_changelist"),
                _item("Goals", "flag", "goals_goal_changelist"),
                _item("Plans", "route", "goals_plan_changelist"),
                _item("Steps", "format_list_numbered", "goals_planstep_changelist"),
                _item("Intents", "checklist", "goals_intent_changelist"),
                _item("Progress notes", "edit_note", "goals_progressnote_changelist"),
                _item("Goal memories", "link", "goals_goalmemorylink_changelist"),
                _item("Satisfactions", "sentiment_satisfied", "goals_satisfaction_changelist"),
                _item("Percepts", "hearing", "agents_percept_changelist"),
            ],
        },
        {
            "title": "Work",
            "items": [
                _item("Heartbeat schedules", "schedule", "agents_heartbeatschedule_changelist"),
                _item("Model calls", "forum", "calls_externalcall_changelist"),
                _item("Ledger entries", "payments", "calls_ledgerentry_changelist"),
                _item("Daily usage", "speed", "calls_dailyusage_changelist"),
                _item("Token ratios", "balance", "calls_tokenratio_changelist"),
                _item("Policies", "tune", "agents_agentpolicy_changelist"),
                _item("Processes", "dns", "heartbeats_process_changelist", _in_tenant_or_above),
            ],
        },
        {
            "title": "Setup",
            "items": [
                _item("Templates", "genetics", "agents_template_changelist"),
                _item("Built-in templates", "inventory_2", "agents_builtintemplate_changelist"),
                _item("Members", "group", "tenants_membership_changelist"),
                _item("API tokens", "vpn_key", "access_apitoken_changelist"),
                _item("Repeated requests", "repeat_one", "access_idempotentrequest_changelist"),
                _item("Your sessions", "key", "own-sessions", lambda _request: True),
                _item("Audit events", "history", "audit_auditevent_changelist"),
            ],
        },
        {
            "title": "Installation",
            "items": [
                _item("Tenants", "domain", "tenants_tenant_changelist", is_platform_operator),
                _item("Users", "person", "tenants_user_changelist", is_platform_operator),
                _item("Jobs", "engineering", "memories_jobrun_changelist", is_platform_operator),
                _item(
                    "Embedder faults", "link_off", "memories_embedderfault_changelist", is_platform_operator
                ),
                _item("Platform events", "policy", "audit_platformevent_changelist", is_platform_operator),
            ],
        },
    ]
