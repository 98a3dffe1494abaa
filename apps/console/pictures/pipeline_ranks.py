"""Compute the rank of each node of a drawn pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def ranks_of(following: Mapping[str, Sequence[str]], starts: Sequence[str]) -> dict[str, int]:
    """Return for each node that can be reached how many others come before it on the longest way without a way back."""
    ahead: dict[str, list[str]] = {}
    order: list[str] = []
    for start in starts:
        _order(start, following, ahead, order)
    ranks: dict[str, int] = {}
    for name in reversed(order):
        ranks.setdefault(name, 0)
        for target in ahead[name]:
            ranks[target] = max(ranks.get(target, 0), ranks[name] + 1)
    return ranks


def _order(
    start: str, following: Mapping[str, Sequence[str]], ahead: dict[str, list[str]], order: list[str]
) -> None:
    """Add the nodes that a start leads to, each after all that it leads to; `ahead` gets their ways but those back."""
    if start in ahead:
        return
    ahead[start], open_nodes = [], {start}
    waiting = [(start, iter(following.get(start, ())))]
    while waiting:
        name, targets = waiting[-1]
        target = next(targets, None)
        if target is None:
            order.append(name)
            open_nodes.discard(name)
            waiting.pop()
        elif target not in open_nodes:
            ahead[name].append(target)
            if target not in ahead:
                ahead[target] = []
                open_nodes.add(target)
                waiting.append((target, iter(following.get(target, ()))))
