"""Check keys, the language model, the embedder, and the embedding models of agents."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError

from apps.agents.models import AgentKey
from apps.calls.services.token_ratios import read_token_ratios
from apps.default_model import default_model
from apps.heartbeats.services.processes import fleet_model
from apps.memories.services.embedding import embedders
from apps.memories.services.embedding.backlog import embedding_backlog
from apps.providers import model_for, token_counters
from apps.tenants.keys import master_keys
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.adapters.credentials import SERVER_HANDLE
from arbor.agents.identity import open_private_key
from arbor.agents.keys import KeyPurpose, key_label
from arbor.embedding.models import EmbedAtStorage
from arbor.errors import ArborError, ConfigurationInvalid
from arbor.models.handles import is_reflex
from arbor.models.windows import MAX_RATIO
from arbor.quotations import counted
from arbor.sealing import MasterKeys, SealedRecord
from config.cli.checks.finding import Finding, fail, name_first, ok, warn

#: The most embedding models, besides that of the settings, whose embedders are tried.
_MODELS_TRIED = 5
#: The most tenants, and keys of each, whose sealed keys are opened.
_TENANTS_TRIED, _KEYS_TRIED = 20, 3
#: The age from which a text without a vector is worth a warning.
_BACKLOG_WITHIN = timedelta(minutes=5)
_EMBEDDER_REMEDY = "correct ARBOR_EMBEDDING_MODEL, ARBOR_EMBEDDING_DIMENSION, ARBOR_EMBEDDING_URL and its key"


def check_model() -> Finding:
    """Check the default model, as far as the settings show; it is not called."""
    handle = default_model()
    used = _fleet_model(handle)
    if used != handle:
        return warn(
            "model",
            f"the running workers use {used}; this command's environment names {handle}",
            "nothing, if that is meant; else give both the same settings (.env)",
        )
    try:
        model_for(handle)
    except ArborError as error:
        return fail("model", str(error), "set ARBOR_DEFAULT_MODEL=provider/model and that provider's key")
    if is_reflex(handle):
        return warn(
            "model",
            "none: agents act by the reflex policy (fixed rules, no language model)",
            "enter a key on the page Models of the console, or set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST",
        )
    if handle == SERVER_HANDLE and not settings.ARBOR_DEFAULT_MODEL:
        return warn(
            "model",
            f"{handle}: no setting names a model of the server at OPENAI_BASE_URL, and few servers but llama.cpp accept the name `default`",
            "set ARBOR_DEFAULT_MODEL=openai/NAME, with the name of a model that the server has",
        )
    return ok("model", handle)


def check_token_ratios() -> Finding:
    """Check that the correction of token estimates, learnt from the counts of providers, is below its limit."""
    ratios = read_token_ratios()
    if not ratios:
        return ok("token estimate", "no model has reported its counts yet")
    detail = ", ".join(
        f"{ratio.model} counts {ratio.ratio:.2f} for 1 ({counted(ratio.calls, 'call')})" for ratio in ratios
    )
    if any(ratio.ratio >= MAX_RATIO for ratio in ratios):
        return warn(
            "token estimate",
            f"{detail}: {MAX_RATIO:g} is the limit, so prompts may be too long",
            "set ARBOR_MODEL_CONTEXT lower than the server's window",
        )
    return ok("token estimate", detail)


def check_tokenizers() -> Finding:
    """Check that the files of tokenizers can be read."""
    files = settings.ARBOR_TOKENIZERS
    loaded = token_counters()
    if faulty := sorted(set(files) - set(loaded)):
        return warn(
            "tokenizers",
            f"the file of {', '.join(faulty)} is no tokenizer.json, so tokens are estimated",
            "set ARBOR_TOKENIZERS to the tokenizer.json that comes with the model's weights",
        )
    return ok("tokenizers", ", ".join(sorted(loaded)) or "none: tokens are estimated")


def _fleet_model(own: str) -> str:
    try:
        return fleet_model()
    except DatabaseError:
        return own  # `check_database` reports this error


def check_embedder() -> Finding:
    """Check that the embedder of new minds gives vectors of the right dimension, and that its settings are valid."""
    try:
        EmbedAtStorage.parse(settings.ARBOR_EMBED_AT_STORAGE)
    except ConfigurationInvalid as error:
        return fail("embedder", str(error), "correct ARBOR_EMBED_AT_STORAGE")
    try:
        check = embedders.check_embedder()
    except ConfigurationInvalid as error:
        return fail("embedder", str(error), _EMBEDDER_REMEDY)
    if check.error:
        return fail("embedder", check.error, _EMBEDDER_REMEDY)
    return ok("embedder", f"{check.made_by}, {check.model.dimension} dimensions, {_milliseconds(check)}")


def check_minds() -> Finding:
    """Check that the embedder of every agent answers, and that all agents use the embedding model of the settings."""
    try:
        others = embedders.other_models()
    except ConfigurationInvalid as error:
        return fail("minds", str(error), _EMBEDDER_REMEDY)
    if not others:
        return ok("minds", "all agents' vectors are of the settings' embedding model")
    unreachable = [
        f"{_agents(other.agents, 'has', 'have')} {other.model}, and recall works by words alone: {check.error}"
        for other in others[:_MODELS_TRIED]
        if (check := embedders.check_embedder(other.model)).error
    ]
    if unreachable:
        return fail(
            "minds",
            "; ".join(unreachable),
            "set its key or address again (ARBOR_EMBEDDING_URLS), or run `arbor memory reembed`",
        )
    agents = sum(other.agents for other in others)
    models = name_first([str(other.model) for other in others], most=_MODELS_TRIED)
    return warn(
        "minds",
        f"{_agents(agents, 'uses', 'use')} another embedding model: {models}",
        "run `arbor memory reembed`",
    )


def check_backlog() -> Finding:
    """Check the texts that wait for a vector, and that no embedder fails."""
    backlog = embedding_backlog()
    minutes = backlog.oldest.total_seconds() / 60
    wait = counted(backlog.waiting, "text waits", "texts wait")
    waiting = f"{wait} for a vector, the oldest for {minutes:.0f} min"
    faults = embedders.embedder_faults()
    if faults:
        worst = faults[0]
        return warn(
            "embedding backlog",
            f"{worst.embedding_model} failed {counted(worst.failures, 'time')} since {worst.since:%Y-%m-%d %H:%M} UTC: {worst.error}; {waiting}",
            f"repair it; the next attempt is after {worst.retry_at:%H:%M:%S} UTC",
        )
    if backlog.oldest > _BACKLOG_WITHIN:
        return warn("embedding backlog", waiting, "see that a worker serves the queue `embedding`")
    return ok("embedding backlog", waiting if backlog.waiting else "nothing waits for its vector")


def _agents(number: int, one: str, several: str) -> str:
    return counted(number, f"agent {one}", f"agents {several}")


def _milliseconds(check: embedders.EmbedderCheck) -> str:
    return f"answered in {check.latency_s * 1000:.1f} ms"


def check_master_key() -> Finding:
    """Check that there is a master key, and that no rotation of it was left unfinished."""
    keys: MasterKeys | None = settings.ARBOR_MASTER_KEYS.read()
    if keys is None:
        return fail(
            "master key",
            "there is none: agents cannot be created, and their keys cannot be opened",
            "run `arbor up` once, or set ARBOR_MASTER_KEY_FILE",
        )
    if keys.other_id is not None:
        return warn(
            "master key",
            f"two are open: {keys.current_id} seals, {keys.other_id} opens only",
            "finish the rotation: `arbor keys rotate`, then `arbor keys retire`",
        )
    return ok("master key", f"present ({keys.current_id})")


def check_keys() -> Finding:
    """Check that the agents' sealed keys open under the master keys."""
    try:
        keys = master_keys()
    except ConfigurationInvalid:
        return fail("agents' keys", "cannot be opened without the master key", "restore the master key")
    rows = [row for tenant in Tenant.objects.using(OPS).all()[:_TENANTS_TRIED] for row in _some_keys(tenant)]
    for row in rows:
        try:
            open_private_key(
                SealedRecord.from_json(row.sealed_private_key),
                keys=keys,
                agent_public_id=row.agent.public_id,
                tenant_id=str(row.tenant_id),
                label=key_label(KeyPurpose(row.purpose), row.number),
            )
        except ArborError as error:
            return fail("agents' keys", str(error), "use the master key under which the agents were created")
    return ok("agents' keys", f"{len(rows)} tried, all open" if rows else "no agents yet")


def _some_keys(tenant: Tenant) -> list[AgentKey]:
    # A tenant's transaction, because the operations role may not read keys.
    with tenant_transaction(tenant.id):
        return list(AgentKey.objects.select_related("agent").exclude(sealed_private_key={})[:_KEYS_TRIED])
