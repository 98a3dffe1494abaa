"""Decide: which of the proposed actions run, and the vectors of what they search for and store."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import structlog

from apps.contacts.services.limits import seen_refusals
from apps.heartbeats.handlers.guard import taken_within
from apps.heartbeats.handlers.terms import boundaries_in, budget_in, model_in, own_boundaries
from apps.heartbeats.services.boundary_vectors import example_vectors
from apps.memories.services.embedding import embed_for_storage, embed_query, embeds_here
from apps.memories.services.recall import meaning_texts
from arbor.errors import EmbeddingFailed
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.decision import Decision, decide, texts_to_check, texts_to_search, texts_to_store
from arbor.heartbeat.guarding import within_boundaries
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.situation import Situation
from arbor.pipeline.engine import Context, NodeResult, Phase

log = structlog.get_logger(__name__)


class Decide:
    """Chooses which of the proposed actions run, known, permitted, well-formed, affordable, and what else is taken."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put the decisions into the context."""
        reply: Reply = context["reply"]
        situation: Situation = context["situation"]
        missing: dict[str, str] = context.get("missing", {})
        decisions = decide(
            reply.actions,
            registry=ACTIONS,
            allowed=[*context["allowed"], *missing],
            energy=situation.energy,
            budget=budget_in(context),
            missing=missing,
            # An action's place in its beat names it: a further turn counts on.
            first=len(context.get("all_results", [])),
            cooling=seen_refusals(situation.environment),
            guarded=partial(within_boundaries, boundaries=boundaries_in(context), vectors={}),
        )
        queries = [str(each.params["query"]) for each in decisions if each.runs and each.action == "recall"]
        meanings = meaning_texts(
            agent_id=UUID(context["agent_id"]),
            texts=queries,
            now=situation.environment.now,
        )
        updates = {"decisions": list(decisions), "meanings": meanings}
        return NodeResult(updates={**updates, **taken_within(context)})


class Embed:
    """Embeds what the actions will search for and store: outside any transaction, if an embedder has to be waited for."""

    phase = Phase.OUTSIDE

    def waits(self, context: Context) -> bool:
        """Tell whether the vectors come from elsewhere than this process."""
        return not embeds_here(model_in(context))

    def run(self, context: Context) -> NodeResult:
        """Put the vectors by text into the context; where there is none, words must do until upkeep catches up."""
        decisions: list[Decision] = context["decisions"]
        tenant_id, model = UUID(context["tenant_id"]), model_in(context)
        searched = texts_to_search(decisions)
        stored = texts_to_store(decisions, context["reply"])
        # Of earlier turns, those of the notes: they are stored at the end.
        vectors: dict[str, list[float]] = dict(context.get("vectors") or {})
        # What goes out is embedded to be held against boundaries, and for nothing else.
        checked = [text for text in texts_to_check(decisions) if text not in searched and text not in stored]
        outgoing: dict[str, list[float]] = {}
        if searched or checked:
            meanings = [context["meanings"].get(text, text) for text in searched]
            try:
                found = embed_query(tenant_id=tenant_id, texts=[*meanings, *checked], model=model).tolist()
                vectors |= dict(zip(searched, found[: len(searched)], strict=True))
                outgoing = dict(zip(checked, found[len(searched) :], strict=True))
            except EmbeddingFailed as error:
                log.warning("acting_by_words_alone", agent_id=context["agent_id"], error=str(error))
        if stored:
            made = embed_for_storage(tenant_id=tenant_id, texts=stored, model=model)
            if made is not None:
                vectors |= {text: vector.tolist() for text, vector in zip(stored, made, strict=True)}
        # What crosses a boundary in other words than its own is seen only now, by its meaning; what it would have cost
        # stays unspent.
        examples = example_vectors(tenant_id=tenant_id, model=model, own=own_boundaries(context))
        known = examples | outgoing | vectors
        guarded = [within_boundaries(each, boundaries_in(context), known) for each in decisions]
        return NodeResult(
            updates={"vectors": vectors, "decisions": guarded, **taken_within(context, vectors=known)}
        )
