"""Check decisions against the reflexes, before every other check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arbor.authority.reflexes import COMMAND_NAMES, ReflexKind, ReflexTerms, find_secret, reflex_of
from arbor.heartbeat.decision import Decision, DecisionVerdict, texts_of, texts_to_guard
from arbor.tools.names import is_tool_action

#: The text of a refused action in traces, so that a secret does not get there.
REMOVED = "[removed by a reflex]"


def apply_reflexes(decision: Decision, terms: ReflexTerms) -> Decision:
    """Return a proposed decision, refused if a reflex stops it; parameters with a secret are removed from the record."""
    match = reflex_of(decision.action, texts_to_guard(decision), commands=_commands(decision), terms=terms)
    if match is None:
        return decision
    changes: dict[str, Any] = {"verdict": DecisionVerdict.REFLEX, "reason": match.reason, "cost": 0}
    if match.kind is ReflexKind.SECRET:
        # The secret may be in a name, or divided among texts, so nothing of the parameters remains.
        changes["params"] = {REMOVED: len(decision.params)}
        if find_secret(decision.reasoning, terms.own_secrets):
            changes["reasoning"] = REMOVED
    return decision.model_copy(update=changes)


def _commands(decision: Decision) -> Iterator[str]:
    """Yield the arguments of a tool that are run as a command."""
    if not is_tool_action(decision.action):
        return
    for name, value in decision.params.items():
        if name.lower() in COMMAND_NAMES:
            texts = [value] if isinstance(value, str) else [*texts_of({name: value})]
            yield from texts
            # A command may be given word by word.
            yield " ".join(texts)
