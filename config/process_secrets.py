"""The secrets that each process uses, and the environment of a process without all other secrets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from config.credentials import WITHHELD, installation_secrets, without_password
from config.environment import OWN_SECRETS, env, has_own_secrets

OWNER, APP, OPS, ACCOUNTS = (
    "DATABASE_URL",
    "ARBOR_APP_DATABASE_URL",
    "ARBOR_OPS_DATABASE_URL",
    "ARBOR_ACCOUNTS_DATABASE_URL",
)
BROKER = "CELERY_BROKER_URL"
MASTER_KEYS = frozenset({"ARBOR_MASTER_KEY", "ARBOR_OTHER_MASTER_KEY"})
#: The keys of providers. That of OpenAI may be an embedder's too.
EMBEDDING_KEY = "OPENAI_API_KEY"
MODEL_KEYS = frozenset({EMBEDDING_KEY, "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"})

#: The secrets of each process, except workers: those of a worker are the secrets of its queues.
_OF_PROCESS: dict[str, frozenset[str]] = {
    "prepare": frozenset({OWNER, APP, OPS, ACCOUNTS, BROKER, "ARBOR_OPERATOR_PASSWORD"}) | MASTER_KEYS,
    "scheduler": frozenset({APP, BROKER}),
    # The master key seals the keys of agents and the secrets of webhooks that are created in the console.
    "web": frozenset({APP, OPS, ACCOUNTS, BROKER, "SECRET_KEY", "ARBOR_METRICS_TOKEN"}) | MASTER_KEYS,
    # The API needs no accounts role: a token names its tenant, and is looked up under that tenant's row-level security. The
    # operations role changes members and limits.
    "api": frozenset({APP, OPS, BROKER}) | MASTER_KEYS,
    "flower": frozenset({ACCOUNTS, BROKER}),
    "fork-server": frozenset(),
}
_MAINTENANCE = frozenset({APP, OPS, BROKER})
_OF_QUEUE: dict[str, frozenset[str]] = {
    "dispatch": frozenset({APP, OPS, BROKER}),
    # The master key opens the keys with which agents sign, and proves that endorsements are this installation's.
    "heartbeat": frozenset({APP, BROKER}) | MASTER_KEYS,
    # The master key opens the secrets of tool servers and the keys that tenants have entered.
    "llm": frozenset({APP, BROKER}) | MODEL_KEYS | MASTER_KEYS,
    "embedding": frozenset({APP, OPS, BROKER}),
    # The master key opens the secrets of webhooks.
    "outbox": frozenset({APP, OPS, BROKER, "ARBOR_EMAIL_PASSWORD", "OTEL_EXPORTER_OTLP_HEADERS"})
    | MASTER_KEYS,
    "neighborhoods": _MAINTENANCE,
    "episodes": _MAINTENANCE,
    "decay": _MAINTENANCE,
    "cleanup": _MAINTENANCE,
    "consolidation": _MAINTENANCE,
    "documents": _MAINTENANCE,
}
#: The processes and queues that embed texts, except the queue `llm`, which has the keys of providers anyway.
_EMBED = frozenset(
    {
        "prepare",
        "web",
        "api",
        "heartbeat",
        "embedding",
        "episodes",
        "cleanup",
        "consolidation",
        "documents",
        "neighborhoods",
    }
)
#: All names under which a secret may be in the environment.
ALL_SECRETS = (
    frozenset().union(*_OF_PROCESS.values(), *_OF_QUEUE.values())
    # Another name of the broker's address, and the passwords that compose builds addresses with.
    | {
        "REDIS_URL",
        "POSTGRES_PASSWORD",
        "VALKEY_PASSWORD",
        "APP_PASSWORD",
        "OPS_PASSWORD",
        "ACCOUNTS_PASSWORD",
    }
)


def secrets_of(process: str) -> frozenset[str]:
    """Return the names of the secrets that a process other than a worker uses."""
    return _OF_PROCESS[process] | _embedding_key({process})


def secrets_of_queues(queues: Iterable[str]) -> frozenset[str]:
    """Return the names of the secrets that a worker of these queues uses."""
    served = frozenset(queues)
    return frozenset().union(*(_OF_QUEUE[queue] for queue in served)) | _embedding_key(served)


def _embedding_key(parts: Iterable[str]) -> frozenset[str]:
    """Return the name of OpenAI's key where a part embeds texts, and one of the embedding models is OpenAI's."""
    models = [
        env.str("ARBOR_EMBEDDING_MODEL", default="wordllama"),
        *env.dict("ARBOR_EMBEDDING_URLS", default={}),
    ]
    uses_key = any(model.startswith("openai/") for model in models) and _EMBED.intersection(parts)
    return frozenset({EMBEDDING_KEY}) if uses_key else frozenset()


def own_environment(
    names: frozenset[str], *, secrets: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment with these secrets and without all others; other variables stay as they are.

    Settings that are read from it look for no other secrets, neither in files nor in `.env`, whose values it has already.
    """
    own = {
        name: value
        for name, value in environment.items()
        if name not in ALL_SECRETS and name.removesuffix("_FILE") not in ALL_SECRETS
    }
    own |= {name: value for name, value in secrets.items() if name.removesuffix("_FILE") in names}
    if OWNER not in names and OWNER in secrets:
        # The settings read the server's address from this variable.
        own[OWNER] = without_password(secrets[OWNER])
    # Whether a provider is configured decides about the default model, also where its key is not used.
    known = secrets.keys() | set(environment.get(WITHHELD, "").split(","))
    missing = sorted(name for name in MODEL_KEYS - names if name in known)
    return own | {OWN_SECRETS: "true", WITHHELD: ",".join(missing), "ARBOR_ENV_FILE": ""}


def remove_foreign_secrets(names: frozenset[str]) -> None:
    """Remove all secrets but these from this process's environment, unless it was given its own; call before the settings load."""
    if has_own_secrets():
        return
    own = own_environment(names, secrets=installation_secrets(), environment=os.environ)
    for name in os.environ.keys() - own.keys():
        del os.environ[name]
    os.environ.update(own)
