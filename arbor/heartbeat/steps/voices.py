"""Ask the inner voices about a hard decision, one call for each, then ask for the decision again."""

from __future__ import annotations

from arbor.errors import ReplyInvalid
from arbor.heartbeat.dialogue import (
    VIEW_LENGTH,
    VOICE_SCHEMA,
    VOICE_TEMPERATURE,
    VOICE_TOKENS,
    VOICES,
    VoiceView,
    hard_decisions,
    read_view,
    reconsider_text,
    voice_text,
)
from arbor.heartbeat.needs import EndedCall, PastExchange, PastQuestion, Question
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.windows import (
    MESSAGE_OVERHEAD,
    further_sections,
    max_prompt_tokens,
    spent_tokens,
    suspended,
)
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage
from arbor.models.token_estimates import CHARACTERS_PER_TOKEN
from arbor.pipeline.engine import NodeOutcome, NodeResult, Steps
from arbor.values import replace


class InnerVoices:
    """Asks the voices; runs again while `voices_left` is above 0.

    A voice that fails is left out; if all fail, the round trip fails, and the hard decision is not carried out. It fails as
    the last voice did: as a failed call, or as an unreadable reply. Without room in the window, no voice is asked, and the
    decision stays as it is.
    """

    def __call__(self, heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
        """Suspend on the call of the next voice, which continues the conversation with the reply in question."""
        if not heartbeat.views:
            heartbeat = replace(
                heartbeat,
                hard=[*hard_decisions(heartbeat.reply_or_empty, heartbeat.situation)],
                deliberated=heartbeat.round_trip,
            )
            # The views need room beside the conversation so far.
            views = heartbeat.voices * VIEW_LENGTH // CHARACTERS_PER_TOKEN + MESSAGE_OVERHEAD
            needed = spent_tokens(heartbeat) + views
            if needed > max_prompt_tokens(heartbeat):
                return NodeResult(
                    state=replace(heartbeat, hard=[]),
                    outcome=NodeOutcome.PARTIAL,
                    changed=("the model has no room for an inner dialogue",),
                )
        asked: PastExchange = yield PastQuestion(call_id=heartbeat.call_id)
        voice = list(VOICES)[len(heartbeat.views)]
        text = voice_text(voice, heartbeat.hard)
        request = ModelRequest(
            purpose=CallPurpose.VOICE,
            system=asked.system,
            messages=(
                *asked.messages,
                PromptMessage(role="assistant", content=asked.reply),
                PromptMessage(role="user", content=text),
            ),
            schema=dict(VOICE_SCHEMA),
            schema_name="voice",
            max_tokens=VOICE_TOKENS,
            temperature=VOICE_TEMPERATURE,
        )
        question = Question(
            model=heartbeat.model,
            request=request.to_json(),
            sections=further_sections(heartbeat, spent_tokens(heartbeat), "voice", text),
        )
        # The stored call has the reply in question.
        heartbeat = replace(heartbeat, reply=None)
        return suspended(heartbeat, CallPurpose.VOICE, question)

    def resume(self, heartbeat: HeartbeatState, result: EndedCall) -> NodeResult[HeartbeatState]:
        """Add the view; after the last one, prepare the question for the decision, or fail if no voice answered."""
        voice = list(VOICES)[len(heartbeat.views)]
        view = _view(voice, result)
        heartbeat = replace(heartbeat, views=[*heartbeat.views, view])
        advice = f"{view.advice}: " if view.advice else ""
        changed = f"{voice}: {advice}{view.view}" if view.view else f"{voice}: {view.fault}"
        if heartbeat.voices_left:
            return NodeResult(state=heartbeat, changed=(changed,))
        if not any(view.view for view in heartbeat.views):
            reason = f"no inner voice answered about a hard decision: {view.fault}"
            failed = replace(heartbeat, views=[], hard=[], failure=reason)
            outcome = NodeOutcome.RETRY if result.complete else NodeOutcome.FAILURE
            return NodeResult(state=failed, outcome=outcome, changed=(changed,))
        asking = replace(
            heartbeat,
            answered=heartbeat.call_id,
            follow_up=reconsider_text(heartbeat.views, nonce=heartbeat.mark),
            conversation_tokens=spent_tokens(heartbeat),
            views=[],
            hard=[],
        )
        return NodeResult(state=asking, changed=(changed, "decides anew"))


def _view(voice: str, result: EndedCall) -> VoiceView:
    if not result.complete:
        return VoiceView(voice=voice, fault=f"{result.error_kind}: {result.error}")
    try:
        return read_view(voice, result.text)
    except ReplyInvalid as error:
        return VoiceView(voice=voice, fault=f"its reply cannot be used: {error}")
