"""Fixtures of skills, their folder, and agents that use them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings

from apps.knowledge.services import global_skills
from apps.knowledge.services.skill_texts import clear_text_cache
from tests.integration.heartbeats.conftest import (
    agent,
    fleet,
    heartbeats,
    idle_agent,
    new_agent,
    scripted,
)

__all__ = ["agent", "fleet", "heartbeats", "idle_agent", "new_agent", "scripted"]

type WriteSkill = Callable[..., Path]


def skill_text(name: str, body: str = "Count the lamps.", *, version: str = "1") -> str:
    """Return a SKILL.md file."""
    return f'---\nname: {name}\ndescription: The work of {name}.\nversion: "{version}"\ntags: [test]\n---\n{body}\n'


@pytest.fixture(autouse=True)
def _no_cached_texts() -> None:
    clear_text_cache()


@pytest.fixture
def set_window(scripted: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let agents use a scripted model, and return a function that sets the tokens of its window."""
    scripted("")
    return lambda tokens: monkeypatch.setattr(settings, "ARBOR_MODEL_CONTEXT", tokens)


@pytest.fixture
def write_skill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteSkill:
    """Return a function that writes a skill into the only folder of global skills."""
    monkeypatch.setattr(settings, "ARBOR_SKILLS_FOLDER", str(tmp_path))
    monkeypatch.setattr(global_skills, "shipped_folder", lambda: tmp_path / "none")
    monkeypatch.setattr(global_skills._LastLoad, "stamp", None)

    def write(name: str, body: str = "Light the lamps.", *, version: str = "1", text: str = "") -> Path:
        path = tmp_path / name / "SKILL.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text or skill_text(name, body, version=version))
        return path

    return write
