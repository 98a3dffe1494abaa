"""The room of a conversation's prompt in the windows of its models: the parts that are left out, and the tokens for the reply."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from arbor.contacts.chat_view import ChatView
from arbor.errors import ContextTooLarge
from arbor.heartbeat.prompts.fitting import CutContext, no_room_fault
from arbor.heartbeat.prompts.prompt import Prompt
from arbor.heartbeat.prompts.token_shares import MIN_REPLY, reply_room
from arbor.models.handles import is_reflex
from arbor.models.windows import PromptLimits, bounded_ratio


def cut_of(prompt: Prompt, view: ChatView, models: Sequence[str]) -> CutContext | None:
    """Return what the prompt leaves out; None if it is whole, or if the reflex policy reads the view instead."""
    if not prompt.removed or is_reflex(models[0]):
        return None
    entries = {section.name: section.cut for section in prompt.sections}
    entries["conversation"] = entries.get("conversation", 0) + view.earlier
    return CutContext(removed=prompt.removed, entries=entries, left=prompt.sizes)


def require_room(prompt: Prompt, limits: PromptLimits, models: Sequence[str]) -> None:
    """Raise ContextTooLarge if the prompt leaves no room for a reply."""
    if is_reflex(models[0]) or prompt.tokens + MIN_REPLY <= limits.window:
        return
    raise ContextTooLarge(
        no_room_fault(model=models[0], window=limits.window, tokens=prompt.tokens, sizes=prompt.sizes)
    )


def reply_limit(
    prompt: Prompt,
    limits: PromptLimits,
    *,
    windows: Mapping[str, int],
    ratios: Mapping[str, float],
    reply: int,
) -> int:
    """Return the most tokens of a reply, as the models count them; `windows` are theirs, `reply` is the setting."""
    asked = max(
        math.ceil(prompt.tokens * (1.0 if limits.tokenizer else bounded_ratio(ratios.get(handle, 1.0))))
        for handle in windows
    )
    window = min(windows.values())
    return min(reply_room(window=window, reply=reply), max(window - asked, MIN_REPLY))
