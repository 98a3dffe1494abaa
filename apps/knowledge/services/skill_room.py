"""Check that the skills of agents fit whole into the windows of their models, because no prompt cuts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from django.conf import settings
from django.db import connections

from apps.agents.models import Agent, AgentPolicy
from apps.agents.services.lookup import own_model
from apps.authority.services.explanations import action_names
from apps.calls.models import TokenRatio
from apps.default_model import default_model
from apps.knowledge.models import AgentSkill, GlobalSkill, Skill
from apps.knowledge.services import queries
from apps.knowledge.services.skill_texts import skill_bodies
from apps.selves.services.self_knowledge import system_prompt_of
from apps.tenants.scope import APP, OPS
from arbor.errors import LimitReached
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.prompts.fitting import is_small
from arbor.heartbeat.prompts.instructions import instructions
from arbor.heartbeat.prompts.token_shares import reply_room
from arbor.heartbeat.tiers import ThinkTier, models_of
from arbor.knowledge.skills import SkillRoom, check_room
from arbor.models.handles import is_reflex
from arbor.models.token_estimates import estimate_tokens
from arbor.models.windows import prompt_limits

#: The fewest tokens of a situation: the smallest shares of its sides, and the short sections that are never cut.
MIN_SITUATION = 1_000


def lock_skill_sizes() -> None:
    """Lock the sizes of global skills and default models, through the operations role, before they change."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(queries.LOCK_SKILL_SIZES)


def lock_skill_sizes_shared() -> None:
    """Lock the sizes of global skills and default models against changes until the transaction ends; others may share the lock.

    Call it before any row of skills is locked.
    """
    with connections[APP].cursor() as cursor:
        cursor.execute(queries.LOCK_SKILL_SIZES_SHARED)


def check_agents_have_room(agents: Iterable[Agent], *, changed: Mapping[str, int]) -> None:
    """Check that agents have room for the versions of skills that they use; `changed` has the new tokens of changed skills by name.

    Raises LimitReached, which names the agent and the sizes.
    """
    for agent in agents:
        check_agent_has_room(agent, {**_tokens_used(agent.id), **changed})


def check_agent_has_room(agent: Agent, tokens: Mapping[str, int]) -> None:
    """Check that skills, given as tokens by name, fit every model that the agent may use. Raises LimitReached."""
    if not tokens:
        return
    for room in _rooms(agent):
        try:
            check_room(dict(tokens), room)
        except LimitReached as error:
            raise LimitReached(f"agent {agent.name}: {error}") from error


def tokens_of(names: Iterable[str]) -> dict[str, int]:
    """Return the tokens of skills by name: those of the tenant's own skill, or else of the global one."""
    wanted = list(names)
    return {
        **dict(GlobalSkill.objects.filter(name__in=wanted).values_list("name", "tokens")),
        **dict(Skill.objects.filter(name__in=wanted).values_list("name", "tokens")),
    }


def _tokens_used(agent_id: UUID) -> dict[str, int]:
    """Return the tokens of the versions of skills that an agent uses, by name: the retained version, or else the latest one."""
    rows = AgentSkill.objects.filter(agent_id=agent_id).order_by("position")
    used = dict(rows.values_list("name", "retained_digest"))
    found = tokens_of(used)
    tokens = {name: found[name] for name in used if name in found}
    if retained := {name: digest for name, digest in used.items() if digest}:
        own = set(Skill.objects.filter(name__in=retained).values_list("name", flat=True))
        bodies = skill_bodies(set(retained.values()))
        tokens |= {
            name: estimate_tokens(bodies[digest])
            for name, digest in retained.items()
            if name not in own and digest in bodies
        }
    return tokens


def _rooms(agent: Agent) -> Iterator[SkillRoom]:
    """Yield the room in the window of each model that may answer for the agent."""
    ratios = dict(TokenRatio.objects.values_list("model", "ratio"))
    character = estimate_tokens(system_prompt_of(agent))
    offers = ACTIONS.offers([name for name in action_names(agent.id) if name in ACTIONS])
    for model in _models(agent):
        limits = prompt_limits(
            [model],
            otherwise=settings.ARBOR_MODEL_CONTEXT,
            reply_tokens=settings.ARBOR_MODEL_MAX_TOKENS,
            ratios=ratios,
        )
        compact = is_small(window=limits.window, reply=limits.reply_tokens)
        rules = sum(estimate_tokens(part.text) for part in instructions(offers, compact=compact))
        yield SkillRoom(
            model=model,
            window=limits.window,
            reply=reply_room(window=limits.window, reply=limits.reply_tokens),
            fixed=rules + character,
            situation=MIN_SITUATION,
        )


def _models(agent: Agent) -> list[str]:
    """Return the language models of all tiers; the reflex policy has no window."""
    policy = AgentPolicy.objects.filter(agent_id=agent.id).first()
    models = (
        model
        for tier in ThinkTier
        for model in models_of(
            tier,
            policy=policy.tier_models if policy else {},
            own=own_model(agent),
            installed=settings.ARBOR_TIER_MODELS,
            default=default_model(),
        )
    )
    return [model for model in dict.fromkeys(models) if not is_reflex(model)]
