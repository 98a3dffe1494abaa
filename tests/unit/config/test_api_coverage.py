"""Every command of the command line has an operation of the API, or a reason why not."""

from __future__ import annotations

from apps.api.api import PATH, api
from tests.command_tree import commands

#: The operations of each command, by method and path below the API's root. `A` is an agent's path.
A = "/agents/{agent_id}"
OPERATIONS: dict[str, tuple[str, ...]] = {
    "agent list": ("GET /agents",),
    "agent show": (f"GET {A}",),
    "agent create": ("POST /agents",),
    **{
        f"agent {verb}": (f"POST {A}/{verb}",)
        for verb in ("start", "pause", "resume", "stop", "sleep", "wake", "publish", "unpublish")
    },
    "agent destroy": (f"DELETE {A}",),
    "agent tell": (f"POST {A}/messages",),
    "agent perceive": (f"POST {A}/events",),
    "agent run": (f"POST {A}/heartbeats",),
    "agent trace": (f"GET {A}/heartbeats", f"GET {A}/heartbeats/{{heartbeat_id}}"),
    "agent replay": (f"GET {A}/heartbeats/{{heartbeat_id}}/replay",),
    "agent policy show": (f"GET {A}/policy",),
    "agent policy set": (f"PATCH {A}/policy",),
    "agent template list": ("GET /templates",),
    "agent template show": ("GET /templates/{name}",),
    "agent template validate": ("POST /check-template",),
    "agent template add": ("POST /templates", "PUT /templates"),
    "chat": (f"POST {A}/chat", f"GET {A}/turns", f"GET {A}/turns/{{turn_id}}"),
    "remember": (f"POST {A}/memories",),
    "recall": (f"POST {A}/recall",),
    "memory list": (f"GET {A}/memories",),
    "memory show": (f"GET {A}/memories/{{memory_id}}",),
    "memory similar": (f"GET {A}/similar-memories",),
    "memory episodes": (f"GET {A}/episodes", f"GET {A}/episodes/{{episode_id}}"),
    "memory archive": (f"POST {A}/memories/archive",),
    "memory restore": (f"POST {A}/memories/restore",),
    "memory purge": (f"POST {A}/memories/purge",),
    "memory thoughts": (f"GET {A}/thoughts",),
    "memory theme list": (f"GET {A}/themes",),
    "memory theme show": (f"GET {A}/themes/{{cluster_id}}",),
    "memory concept list": (f"GET {A}/concepts",),
    "memory graph relate": (f"POST {A}/relations",),
    "memory graph unrelate": (f"POST {A}/relations/remove",),
    **{
        f"memory graph {name}": (f"GET {A}/graph/{{question}}",)
        for name in ("causes", "evidence", "connected")
    },
    "memory graph path": (f"GET {A}/graph-path",),
    "memory graph contradictions": (f"GET {A}/contradictions",),
    "memory buffer list": (f"GET {A}/buffer",),
    "memory mind show": (f"GET {A}/working-memory",),
    "memory code list": (f"GET {A}/code",),
    "memory code show": (f"GET {A}/code",),
    "goal list": (f"GET {A}/goals",),
    "goal show": (f"GET {A}/goals/{{goal_id}}",),
    "goal add": (f"POST {A}/goals",),
    **{
        f"goal {name}": (f"PATCH {A}/goals/{{goal_id}}",)
        for name in ("move", "note", "edit", "block", "unblock")
    },
    "goal plan show": (f"GET {A}/goals/{{goal_id}}/plans",),
    "goal plan add": (f"POST {A}/goals/{{goal_id}}/plans",),
    "goal plan start": (f"POST {A}/goals/{{goal_id}}/plans/start",),
    "goal plan met": (f"POST {A}/goals/{{goal_id}}/plans/met",),
    "goal plan abandon": (f"POST {A}/goals/{{goal_id}}/plans/abandon",),
    "self belief list": (f"GET {A}/beliefs",),
    "self belief add": (f"POST {A}/beliefs",),
    "self belief revise": (f"PATCH {A}/beliefs/{{belief_id}}",),
    "self belief drop": (f"PATCH {A}/beliefs/{{belief_id}}",),
    "self identity list": (f"GET {A}/aspects",),
    "self identity add": (f"POST {A}/aspects",),
    "self identity drop": (f"POST {A}/aspects/{{aspect_id}}/drop",),
    "self proposal list": (f"GET {A}/proposals",),
    "self proposal add": (f"POST {A}/proposals",),
    **{
        f"self proposal {verb}": (f"POST {A}/proposals/{{proposal_id}}/{{verb}}",)
        for verb in ("accept", "reject", "defer")
    },
    "self boundary list": (f"GET {A}/boundaries",),
    "self boundary add": (f"POST {A}/boundaries",),
    "self boundary remove": (f"DELETE {A}/boundaries/{{name}}",),
    "self boundary restore": (f"POST {A}/boundaries/{{name}}/restore",),
    "self boundary test": (f"POST {A}/check-boundaries",),
    "self preference list": (f"GET {A}/preferences",),
    "self preference set": (f"PUT {A}/preferences/{{key}}",),
    "self preference remove": (f"DELETE {A}/preferences/{{key}}",),
    "self drives": (f"GET {A}/inner-state",),
    "self mood": (f"GET {A}/inner-state",),
    "self experiences": (f"GET {A}/experiences",),
    "inbox list": ("GET /inbox",),
    "inbox read": ("POST /inbox/{message_id}/read",),
    "inbox answer": ("POST /inbox/{message_id}/answer",),
    "contact channel list": ("GET /channels",),
    "contact channel add": ("POST /channels",),
    "contact channel remove": ("DELETE /channels/{channel_id}",),
    "contact channel enable": ("POST /channels/{channel_id}/{verb}",),
    "contact channel disable": ("POST /channels/{channel_id}/{verb}",),
    "contact channel test": ("POST /channels/{channel_id}/test-message",),
    "contact webhook list": ("GET /webhooks",),
    "contact webhook create": ("POST /webhooks",),
    "contact webhook delete": ("DELETE /webhooks/{webhook_id}",),
    **{f"contact webhook {verb}": ("POST /webhooks/{webhook_id}/{verb}",) for verb in ("pause", "resume")},
    "contact outbox list": ("GET /outbox",),
    "contact outbox retry": ("POST /outbox/{message_id}/{verb}",),
    "contact outbox cancel": ("POST /outbox/{message_id}/{verb}",),
    "contact peers": (f"GET {A}/peers",),
    "tenant limit": ("GET /limits", "PATCH /limits"),
    "tenant member list": ("GET /members",),
    "tenant member add": ("PUT /members/{username}",),
    "tenant member remove": ("DELETE /members/{username}",),
    "signals": ("GET /signals", "GET /signals/names", "GET /signals/stream"),
    "token create": ("POST /tokens",),
    "token list": ("GET /tokens",),
    "token revoke": ("POST /tokens/{token_id}/revoke",),
}
#: Operations without a command: what a token may do, what the console shows, what a resource is.
WITHOUT_COMMAND = {
    "GET /token",
    "GET /tenant",
    "GET /audit",
    "GET /outbox/{message_id}",
    "GET /webhooks/{webhook_id}",
    f"GET {A}/usage",
    f"GET {A}/ledger",
    f"GET {A}/beliefs/{{belief_id}}",
    f"POST {A}/conversations/{{conversation_id}}/end",
}
_PROCESS = "starts or checks processes of a machine"
_INSTALLATION = "of the installation, while a token is of one tenant"
_LATER = "a rare act of upkeep; not yet an operation"
#: Commands without an operation, with the reason.
EXCEPTIONS: dict[str, str] = {
    **dict.fromkeys(
        (
            "up",
            "down",
            "doctor",
            "demo",
            "prepare",
            "worker",
            "scheduler",
            "web",
            "api",
            "flower",
            "manage",
            "openapi",
            "mcp",
        ),
        _PROCESS,
    ),
    **dict.fromkeys(
        (
            "status",
            "tenant list",
            "tenant create",
            "tenant suspend",
            "tenant resume",
            "keys status",
            "keys rotate",
            "keys retire",
            "memory health",
        ),
        _INSTALLATION,
    ),
    **dict.fromkeys(
        (
            f"tenant user {name}"
            for name in ("list", "create", "disable", "enable", "password", "sessions", "sign-out")
        ),
        _INSTALLATION,
    ),
    "agent cycle": "runs heartbeats in its own process; ask for heartbeats one by one",
    "memory ingest": "reads a file of the machine; remember its turns one by one",
    "memory reembed": "moves minds between embedders of the installation",
    **dict.fromkeys(
        (
            "memory add",
            "memory practise",
            "memory source",
            "memory forget",
            "memory theme name",
            "memory theme refresh",
            "memory theme assign",
            "memory theme tip",
            "memory concept link",
            "memory concept place",
            "memory concept merge",
            "memory buffer add",
            "memory buffer promote",
            "memory mind active",
            "memory mind rebuild",
            "self belief filter",
            "tenant energy",
            "ops calls",
            "ops pipeline validate",
            "ops pipeline run",
            "ops pipeline viz",
        ),
        _LATER,
    ),
}


def operations() -> set[str]:
    """Return all operations by method and path."""
    return {
        f"{method.upper()} {path.removeprefix(PATH)}"
        for path, methods in api.get_openapi_schema()["paths"].items()
        for method in methods
    }


def test_every_command_has_an_operation_or_a_reason() -> None:
    names = {" ".join(path) for path in commands()}
    assert sorted(names - OPERATIONS.keys() - EXCEPTIONS.keys()) == [], (
        "add an operation, or a reason why not"
    )
    assert sorted((OPERATIONS.keys() | EXCEPTIONS.keys()) - names) == [], "there is no such command"
    assert sorted(OPERATIONS.keys() & EXCEPTIONS.keys()) == []


def test_every_operation_is_listed() -> None:
    listed = {operation for several in OPERATIONS.values() for operation in several} | WITHOUT_COMMAND
    assert sorted(operations() - listed) == []
    assert sorted(listed - operations()) == []
