"""Build the prompt, ask the model, parse its reply."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from arbor.errors import ModelTimeout, ModelUnavailable, ReplyInvalid
from arbor.heartbeat.needs import EndedCall, PastExchange, PastQuestion, Question
from arbor.heartbeat.prompts.fitting import CutContext, is_small, with_fewer_actions
from arbor.heartbeat.prompts.prompt import build_prompt
from arbor.heartbeat.prompts.questions import request_json
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.parsing import parse_reply
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.replies.reply_schema import SCHEMA_NAME, asked_keys
from arbor.heartbeat.replies.round_trips import (
    goes_on,
    merge_replies,
    within_heartbeat,
)
from arbor.heartbeat.results import RoundTripRecord
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.state import HeartbeatState, PromptParts
from arbor.heartbeat.steps.windows import (
    counter_of,
    fault_without_room,
    follow_up_message,
    further_sections,
    limits_of,
    max_reply_tokens,
    retry_messages,
    spent_tokens,
    suspended,
    with_cuts_audited,
    with_longer_wait,
)
from arbor.heartbeat.tiers import ThinkTier, models_of, tier_of
from arbor.models.handles import is_reflex
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage
from arbor.pipeline.engine import NodeOutcome, NodeResult, Steps
from arbor.quotations import counted
from arbor.values import replace

#: Errors after which another model may answer.
UNREACHABLE_ERRORS = frozenset({ModelUnavailable.__name__, ModelTimeout.__name__})
TEMPERATURE = 0.7


def build_the_prompt(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Choose the tier, and render the situation as a prompt that fits all its models."""
    tier, models = _route(heartbeat)
    situation = _for_model(heartbeat.situation, models[0])
    # The prompt must fit each model that may be asked.
    limits = limits_of(heartbeat, models)
    if not situation.model_is_reflex and is_small(window=limits.window, reply=limits.reply_tokens):
        situation = with_fewer_actions(situation)
    prompt = build_prompt(
        situation,
        heartbeat.character,
        nonce=heartbeat.nonce,
        window=limits.window,
        reply_tokens=limits.reply_tokens,
        count=counter_of(heartbeat, limits),
    )
    sections = tuple(section._asdict() for section in prompt.sections)
    heartbeat = replace(
        heartbeat,
        situation=_with_shown_percepts(situation, prompt.percepts),
        # The others wait for the next heartbeat; the reflex policy reads all of them in the situation.
        signal_positions={
            source: positions
            for source, positions in heartbeat.signal_positions.items()
            if situation.model_is_reflex or source not in prompt.waiting_sources
        },
        prompt=PromptParts(system=prompt.system, user=prompt.user, sections=sections),
        character="",
        mark=heartbeat.nonce,
        round_trip=1,
        model=models[0],
        models_left=list(models[1:]),
        tier=tier.value,
    )
    heartbeat = with_cuts_audited(
        heartbeat,
        CutContext(
            removed=prompt.removed,
            entries={section.name: section.cut for section in prompt.sections},
            left=prompt.sizes,
        ),
        window=limits.window,
    )
    # The situation is stored with this call and not again at the end, so it must be final.
    return NodeResult(state=replace(heartbeat, situation=heartbeat.with_decision_inputs(limits)))


def _with_shown_percepts(situation: Situation, shown: Collection[str]) -> Situation:
    """Return the situation with the shown percepts; the others wait for the next heartbeat."""
    if len(shown) == len(situation.percepts):
        return situation
    return situation.model_copy(
        update={
            "percepts": [percept for percept in situation.percepts if percept.id in shown],
            "waiting": [percept for percept in situation.percepts if percept.id not in shown],
            "boundary_matches": [match for match in situation.boundary_matches if match.about in shown],
        }
    )


def _route(heartbeat: HeartbeatState) -> tuple[ThinkTier, tuple[str, ...]]:
    """Return the tier, lowered by the budget level, and its models."""
    situation = heartbeat.situation
    tier = tier_of(situation).lowered(situation.degradation.tiers_down)
    models = models_of(
        tier,
        policy=heartbeat.routing.tiers,
        own=heartbeat.routing.own,
        installed=heartbeat.rules.tier_models,
        default=heartbeat.rules.default_model,
    )
    return tier, models


def _for_model(situation: Situation, model: str) -> Situation:
    by_rule = is_reflex(model)
    if by_rule == situation.model_is_reflex:
        return situation
    return situation.model_copy(update={"model_is_reflex": by_rule})


class Think:
    """Calls the model."""

    def __call__(self, heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
        """Suspend on a call, or fail if the window has no room; the messages include the fault of an unreadable reply."""
        if heartbeat.prompt is not None:
            system, sections = heartbeat.prompt.system, heartbeat.prompt.sections
            messages = [PromptMessage(role="user", content=heartbeat.prompt.user)]
        else:
            asked: PastExchange = yield PastQuestion(call_id=heartbeat.answered)
            system, messages, sections = _conversation(heartbeat, asked)
        asked_tokens = sum(section["tokens"] for section in sections)
        if heartbeat.unreadable:
            messages += retry_messages(heartbeat, asked_tokens)
        if fault := fault_without_room(heartbeat, asked_tokens, sections):
            failed = replace(with_longer_wait(heartbeat), failure=fault)
            return NodeResult(state=failed, outcome=NodeOutcome.FAILURE)
        situation = heartbeat.situation
        request = ModelRequest(
            purpose=CallPurpose.THINK,
            system=system,
            messages=tuple(messages),
            schema_name=SCHEMA_NAME,
            max_tokens=max_reply_tokens(heartbeat, asked_tokens),
            temperature=TEMPERATURE,
            # Only the reflex policy reads the situation as JSON.
            context=heartbeat.situation_now.model_dump(mode="json") if situation.model_is_reflex else {},
        )
        offers = {offer.name for offer in situation.actions}
        offered = [name for name in heartbeat.allowed if name in offers]
        schemas = {
            name: offer.tool.arguments for name, offer in situation.tools.items() if offer.tool is not None
        }
        # The schema, the largest part, is rebuilt where the request is sent.
        question = Question(
            model=heartbeat.model,
            request=request_json(request, allowed=offered, keys=asked_keys(situation), tools=schemas),
            sections=tuple(sections),
        )
        # The call stores the prompt, so the checkpoint does not need it.
        heartbeat = replace(heartbeat, prompt=None, asked_tokens=asked_tokens)
        return suspended(heartbeat, CallPurpose.THINK, question)

    def resume(self, heartbeat: HeartbeatState, result: EndedCall) -> NodeResult[HeartbeatState]:
        """Accept the reply; a failed call fails the heartbeat, unless another model of the tier can be asked."""
        if result.complete:
            return NodeResult(
                state=replace(heartbeat, reply_text=result.text, call_id=result.call_id, failure="")
            )
        reason = f"{result.error_kind}: {result.error}"
        heartbeat = replace(heartbeat, failure=reason)
        if result.error_kind not in UNREACHABLE_ERRORS or not heartbeat.models_left:
            return NodeResult(state=heartbeat, outcome=NodeOutcome.FAILURE)
        following = with_next_model(heartbeat)
        changed = f"{heartbeat.model} is out of reach ({reason}); {following.model} is asked"
        return NodeResult(state=following, outcome=NodeOutcome.RETRY, changed=(changed,))


def with_next_model(heartbeat: HeartbeatState) -> HeartbeatState:
    """Return the state with the next model of the tier; there must be one."""
    next_model, *remaining = heartbeat.models_left
    return replace(
        heartbeat,
        model=next_model,
        models_left=remaining,
        situation=_for_model(heartbeat.situation, next_model),
    )


def _conversation(
    heartbeat: HeartbeatState, asked: PastExchange
) -> tuple[str, list[PromptMessage], tuple[dict[str, Any], ...]]:
    """Return the earlier prompt, or the conversation for a further round trip."""
    if not heartbeat.answered:
        return asked.system, [asked.messages[0]], asked.sections
    messages = [
        *asked.messages,
        PromptMessage(role="assistant", content=asked.reply),
        PromptMessage(role="user", content=heartbeat.follow_up),
    ]
    return (
        asked.system,
        messages,
        further_sections(heartbeat, heartbeat.conversation_tokens, "follow_up", heartbeat.follow_up),
    )


def parse(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Parse the reply and record its dropped items; retry an unreadable one."""
    try:
        parsed = parse_reply(heartbeat.reply_text)
    except ReplyInvalid as error:
        tries = heartbeat.invalid_replies + 1
        unreadable = replace(
            heartbeat,
            invalid_replies=tries,
            unreadable=str(error),
            failure=f"no usable reply in {counted(tries, 'try', 'tries')}: {error}",
        )
        return NodeResult(state=unreadable, outcome=NodeOutcome.RETRY)
    reply, left_over = within_heartbeat(heartbeat.earlier_reply, parsed.reply)
    heartbeat = heartbeat.with_present(
        dropped=[*heartbeat.present.dropped, *parsed.dropped, *left_over],
        repairs=list(parsed.repairs),
        reasoning=reply.thinking,
    )
    heartbeat = replace(
        heartbeat,
        reply=reply,
        failure="",
        unreadable="",
        invalid_replies=0,
        round_trips=max(heartbeat.round_trip, 1),
    )
    return NodeResult(state=heartbeat)


def follow_up(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Go on to a further round trip with the results, or end with all round trips merged."""
    if heartbeat.failure:
        return NodeResult(
            state=_end_at_failure(heartbeat), changed=(f"round trip {heartbeat.round_trip} came to nothing",)
        )
    results = heartbeat.present.results
    situation = heartbeat.situation_now
    if not goes_on(situation, results, round_trip=heartbeat.round_trip, most=heartbeat.round_trips_allowed):
        return NodeResult(state=_merge_round_trips(heartbeat))
    tokens = spent_tokens(heartbeat)
    message, cut = follow_up_message(heartbeat, spent=tokens)
    window = limits_of(heartbeat, [heartbeat.model]).window
    heartbeat = with_cuts_audited(heartbeat, cut, window=window)
    if not message:
        return NodeResult(
            state=_merge_round_trips(heartbeat), changed=("the model has no room for a further round trip",)
        )
    merged = merge_replies(heartbeat.earlier_reply, heartbeat.reply_or_empty)
    heartbeat = with_percepts_received(heartbeat)
    further = replace(
        heartbeat,
        goes_on=True,
        round_trip=heartbeat.round_trip + 1,
        answered=heartbeat.call_id,
        follow_up=message,
        conversation_tokens=tokens,
        earlier_reply=merged,
        earlier=heartbeat.whole,
        present=RoundTripRecord(),
        reply=None,
        decisions=[],
        vectors=_vectors_of_notes(heartbeat, merged),
    )
    return NodeResult(state=further, changed=(f"goes on to round trip {further.round_trip}",))


def _vectors_of_notes(heartbeat: HeartbeatState, reply: Reply) -> dict[str, list[float]]:
    """Return the vectors of the notes, which are stored at the end; none where the embedder makes them again in this process."""
    if heartbeat.moment.embeds_here:
        return {}
    texts = {note.text for note in reply.memory_notes}
    return {text: vector for text, vector in heartbeat.vectors.items() if text in texts}


def with_percepts_received(heartbeat: HeartbeatState) -> HeartbeatState:
    """Mark the percepts and signals that the prompt showed as received, once."""
    if heartbeat.percepts_received or not (heartbeat.situation.percepts or heartbeat.signal_positions):
        return heartbeat
    received = heartbeat.with_effects(
        received_percepts=[UUID(percept.id) for percept in heartbeat.situation.percepts],
        signal_positions=[
            (UUID(subscription), UUID(position))
            for positions in heartbeat.signal_positions.values()
            for subscription, position in positions.items()
        ],
    )
    return replace(received, percepts_received=True)


def _merge_round_trips(heartbeat: HeartbeatState) -> HeartbeatState:
    return replace(
        heartbeat, goes_on=False, reply=merge_replies(heartbeat.earlier_reply, heartbeat.reply_or_empty)
    )


def _end_at_failure(heartbeat: HeartbeatState) -> HeartbeatState:
    """Return the state of the earlier round trips, with the failure of the last one on record."""
    dropped_round_trip = Dropped(
        path=f"round trip {heartbeat.round_trip}", value="", reason=heartbeat.failure
    )
    return replace(
        heartbeat,
        goes_on=False,
        failure="",
        unreadable="",
        reply=heartbeat.earlier_reply or Reply(),
        present=RoundTripRecord(dropped=[dropped_round_trip]),
    )
