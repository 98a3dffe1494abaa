"""Memories over HTTP."""

from __future__ import annotations

from typing import Any

from tests.support.api import Caller


def test_a_program_of_an_owner_purges(owner: Caller, operator: Caller, vega: dict[str, Any]) -> None:
    memories = f"/agents/{vega['id']}/memories"
    added = owner.post(memories, {"text": "The harbour opens at six."}).json()
    change = {"ids": [added["id"]], "reason": "asked"}
    assert operator.post(f"{memories}/archive", change).json() == {"changed": 1}

    assert operator.post(f"{memories}/purge", change).status_code == 403
    purged = owner.post(f"{memories}/purge", change)

    assert (purged.status_code, purged.json()) == (200, {"changed": 1})
    assert owner.get(f"{memories}/{added['id']}").status_code == 404
