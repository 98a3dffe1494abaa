"""Give a tenant its models: its own keys of providers, tried before they are stored, and its default model."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from uuid import UUID

from django.db import connections, transaction

from apps.agents.models import Agent
from apps.agents.services.locks import lock_agent
from apps.audit.models import AuditAction
from apps.audit.services import record_for_both
from apps.calls.models import ProviderKey
from apps.calls.services.provider_keys import (
    ProviderAccess,
    remove_provider_key,
    store_listed_models,
    store_provider_key,
)
from apps.calls.services.provider_lookup import find_provider
from apps.knowledge.services.active_skills import use_latest_versions
from apps.knowledge.services.skill_room import check_agents_have_room, lock_skill_sizes
from apps.providers import client_for, credentials_of, installation_has
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from arbor.adapters.connect import connect_model
from arbor.adapters.credentials import Credentials, default_handle, tenant_credentials
from arbor.adapters.model_list import MAX_LISTED, list_models
from arbor.audit.changes import change_of
from arbor.errors import Invalid, LimitReached, ModelError, NotFound, SealBroken
from arbor.models.breaker import Breakers
from arbor.models.handles import Handle, Provider, is_reflex
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage
from arbor.models.retry import RetryPolicy
from arbor.quotations import bounded_noun, counted

#: Seconds that a person waits for a provider's answer to one request.
TRIAL_DEADLINE_S = 10.0
#: Agents that an error names, because their skills do not fit a model.
_FAULTS_NAMED = 5
#: The tenants whose trial is under way in this process: slow servers of one tenant must not occupy all of its threads.
_trying: set[UUID] = set()
_trying_lock = threading.Lock()


def connect_provider(
    *, tenant_id: UUID, provider: str, key: str, base_url: str = "", model: str = "", actor: str
) -> ProviderKey:
    """Try a tenant's key of a provider by a request, store it sealed, and make `model` the tenant's default, if given.

    `model` is the name of a model of the provider; a tenant without a default gets a small one, if the skills of its agents fit that. No
    transaction may be open, because a provider is asked.

    Raises Invalid for what was entered, and with the provider's error if the trial fails; LimitReached during another trial, and for a
    model that the skills of an agent do not fit.
    """
    access = ProviderAccess.of(provider, key=key, base_url=base_url)
    handle = _handle(access.provider, model)
    own = tenant_credentials(access.provider, key=access.key, base_url=access.base_url)
    with _one_trial(tenant_id):
        listed = _try(access.provider, own, base_url=access.base_url, handle=handle)
    if handle:
        # Before the key is stored: nothing is changed for a model that is refused.
        _require_fitting_skills(tenant_id, handle)
    with tenant_transaction(tenant_id):
        row = store_provider_key(access=access, listed=listed, actor=actor)
        has_default = bool(Tenant.objects.get(id=tenant_id).default_model)
    if handle:
        set_default_model(tenant_id=tenant_id, model=handle, actor=actor)
    elif not has_default and (suggested := _suggest_handle(own, access.provider, listed)):
        # Nobody asked for this model: where the skills of an agent do not fit it, the tenant stays without a default.
        with suppress(LimitReached):
            set_default_model(tenant_id=tenant_id, model=suggested, actor=actor)
    return row


def try_provider(*, tenant_id: UUID, provider: str) -> ProviderKey:
    """Try a tenant's stored key of a provider, and store the models that the provider lists now.

    Raises NotFound, Invalid with the provider's error if the trial fails and for a key that cannot be opened, and LimitReached during
    another trial.
    """
    with tenant_transaction(tenant_id):
        own = find_provider(tenant_id, f"{provider}/")
    if own is None:
        raise NotFound(f"this tenant has no key of {provider!r}")
    try:
        credentials = credentials_of(own)
    except SealBroken as error:
        raise Invalid(f"{error}; enter the key of {provider} again") from error
    with _one_trial(tenant_id):
        listed = _try(own.provider, credentials, base_url=own.base_url, handle="")
    with tenant_transaction(tenant_id):
        return store_listed_models(provider=provider, listed=listed)


def listed_in_words(row: ProviderKey) -> str:
    """Return in words how many models a provider lists; the stored list ends at MAX_LISTED."""
    return bounded_noun(len(row.listed), MAX_LISTED, "model")


def disconnect_provider(*, tenant_id: UUID, provider: str, actor: str) -> ProviderKey:
    """Remove a tenant's key of a provider, and its default model if it cannot be called any more. Raises NotFound.

    A key can always be removed: skills of agents that do not fit the model of the installation are named in the audit log.
    """
    with tenant_transaction(tenant_id):
        row = remove_provider_key(provider=provider, actor=actor)
    default = Tenant.objects.using(OPS).values_list("default_model", flat=True).get(id=tenant_id)
    if default.startswith(f"{provider}/") and not installation_has(default):
        _write_default(tenant_id, "", actor, must_fit=False)
    return row


def set_default_model(*, tenant_id: UUID, model: str, actor: str) -> Tenant:
    """Choose the model of a tenant's agents without a model of their own; empty: the installation's.

    Raises Invalid for a text that is no handle, and for a provider that neither tenant nor installation has; LimitReached for a
    model that the skills of an agent do not fit.
    """
    handle = str(Handle.parse_input(model)) if model.strip() else ""
    if handle and not _can_call(tenant_id, handle):
        provider = handle.partition("/")[0]
        raise Invalid(f"there is no key or address of {provider}: enter it first")
    return _write_default(tenant_id, handle, actor, must_fit=True)


def _write_default(tenant_id: UUID, handle: str, actor: str, *, must_fit: bool) -> Tenant:
    with transaction.atomic(using=OPS):
        # Nobody chooses skills by the former default meanwhile.
        lock_skill_sizes()
        tenant = Tenant.objects.using(OPS).select_for_update(no_key=True).get(id=tenant_id)
        before, tenant.default_model = tenant.default_model, handle
        if before != handle:
            fault = _find_skill_fault(tenant)
            if fault and must_fit:
                raise LimitReached(fault)
            tenant.save(using=OPS, update_fields=["default_model"])
            record_for_both(
                action=AuditAction.OPERATOR_ACT,
                tenant_id=tenant_id,
                actor=actor,
                message=f"chose {handle or 'the model of the installation'} as the default model"
                f"{f', though {fault}' if fault else ''}",
                detail={"tenant": tenant.slug},
                change=change_of({"default_model": before}, {"default_model": handle}),
            )
    if before != handle:
        _use_latest_skills(tenant_id, actor)
    return tenant


def _require_fitting_skills(tenant_id: UUID, handle: str) -> None:
    """Raise LimitReached where the skills of an agent do not fit a new default model."""
    tenant = Tenant.objects.using(OPS).get(id=tenant_id)
    if tenant.default_model != handle:
        tenant.default_model = handle
        if fault := _find_skill_fault(tenant):
            raise LimitReached(fault)


def _find_skill_fault(tenant: Tenant) -> str:
    """Return why the skills of agents without a model of their own do not fit the tenant's changed default; empty if they fit.

    The first `_FAULTS_NAMED` agents are named, and the others counted.
    """
    faults = []
    with tenant_transaction(tenant.id):
        agents = list(Agent.objects.filter(model="", active_skills__isnull=False).distinct().order_by("id"))
        for agent in agents:
            agent.tenant = tenant
            try:
                check_agents_have_room([agent], changed={})
            except LimitReached as error:
                faults.append(str(error))
    others = len(faults) - _FAULTS_NAMED
    return "; ".join(
        [
            *faults[:_FAULTS_NAMED],
            *([f"and the skills of {counted(others, 'more agent')} do not fit either"] if others > 0 else []),
        ]
    )


def _use_latest_skills(tenant_id: UUID, actor: str) -> None:
    """Switch agents without a model of their own to the versions of skills that did not fit the former default model."""
    with tenant_transaction(tenant_id):
        agents = Agent.objects.filter(model="", active_skills__retained_digest__gt="")
        agent_ids = list(agents.order_by("id").values_list("id", flat=True).distinct())
    for agent_id in agent_ids:
        # An agent may be deleted meanwhile.
        with suppress(NotFound), tenant_transaction(tenant_id):
            use_latest_versions(lock_agent(agent_id), actor=actor)


def _can_call(tenant_id: UUID, handle: str) -> bool:
    if is_reflex(handle):
        return True
    with tenant_transaction(tenant_id):
        has_own = find_provider(tenant_id, handle) is not None
    return has_own or installation_has(handle)


def _handle(provider: Provider, model: str) -> str:
    """Return the handle of a provider's model, which may be entered with or without the provider's name."""
    name = model.strip().removeprefix(f"{provider}/")
    return str(Handle.parse_input(f"{provider}/{name}")) if name else ""


def _suggest_handle(own: Credentials, provider: Provider, listed: tuple[str, ...]) -> str:
    """Return the handle of the provider's small model if it is listed, or of the only listed model; else empty."""
    # Another server may list OpenAI's small model too.
    for known in (default_handle(own), default_handle(replace(own, openai_base_url=""))):
        if known.removeprefix(f"{provider}/") in listed:
            return known
    return f"{provider}/{listed[0]}" if len(listed) == 1 else ""


@contextmanager
def _one_trial(tenant_id: UUID) -> Iterator[None]:
    """Try one provider of a tenant at a time. Raises LimitReached while another trial is under way."""
    with _trying_lock:
        if tenant_id in _trying:
            raise LimitReached("another key of this tenant is being tried; wait for its answer")
        _trying.add(tenant_id)
    try:
        yield
    finally:
        with _trying_lock:
            _trying.discard(tenant_id)


def _try(provider: Provider, own: Credentials, *, base_url: str, handle: str) -> tuple[str, ...]:
    """Return the models that a provider lists; where it cannot list any, ask the model for a few tokens.

    Raises Invalid with the provider's error, or if the provider lists no models and `handle` is empty.
    """
    if connections[APP].in_atomic_block:
        raise RuntimeError("a provider must be asked outside any transaction")
    client = client_for(base_url)
    try:
        listed = list_models(provider, own, client=client, deadline_s=TRIAL_DEADLINE_S, advice=_ADVICE)
        if listed is None and handle:
            model = connect_model(
                handle,
                own,
                breakers=Breakers(),
                policy=RetryPolicy(attempts=1),
                client=client,
                advice=_ADVICE,
            )
            model.complete(_SHORT_REQUEST, deadline_s=TRIAL_DEADLINE_S)
    except ModelError as error:
        hint = f"; {_PRIVATE_ADVICE}" if "not permitted" in str(error) else ""
        raise Invalid(f"{error}{hint}") from error
    if listed is None and not handle:
        raise Invalid(
            "the server lists no models: its address usually ends in /v1; or name a model, which is then tried"
        )
    return listed or ()


#: What to check after an error.
_ADVICE = "the key and the address"
_PRIVATE_ADVICE = "ARBOR_MODEL_ALLOW_PRIVATE=true permits addresses of the installation's own network"
_SHORT_REQUEST = ModelRequest(
    purpose=CallPurpose.CHAT,
    system="",
    messages=(PromptMessage(role="user", content="Say yes."),),
    # Some providers refuse fewer.
    max_tokens=16,
    temperature=1.0,
)
