"""Parsing of SKILL.md files, with all their faults, and checks of the choice of skills."""

from __future__ import annotations

from pathlib import Path

import pytest

from arbor.errors import Invalid, LimitReached, SkillInvalid
from arbor.knowledge import skill_files
from arbor.knowledge.skill_files import read_folders, stamp_of
from arbor.knowledge.skills import (
    MAX_SKILL_LENGTH,
    SkillRoom,
    body_of,
    check_choice,
    check_room,
    digest_of,
    parse_skill,
)

TEXT = """---
name: invoice-review
description: >-
  Review an invoice before
  it is paid.
version: "1.2"
tags: [finance, invoices]
license: MIT
metadata: {author: Ada}
allowed-tools: [read]
---
Start with the total.

# Steps
1. Compare the total with the order.
"""


def test_a_skill_file_is_read_with_its_parts() -> None:
    skill = parse_skill(TEXT)
    assert (skill.name, skill.version, skill.tags) == ("invoice-review", "1.2", ("finance", "invoices"))
    assert skill.description == "Review an invoice before it is paid."
    assert skill.body.startswith("Start with the total.\n\n# Steps\n1. Compare")
    assert skill.body == body_of(TEXT)
    assert skill.digest == digest_of(TEXT) != digest_of(TEXT + " ")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("name: invoice-review", "name: Invoice Review"), "line 2, name: must be lower-case letters"),
        (("name: invoice-review", "name: 7"), "line 2, name: must be text, got 7; put it in quotes"),
        (("name: invoice-review\n", ""), "name: is required"),
        (("license: MIT", "licence: MIT"), "line 8, licence: is not a known key; known: name, description"),
        (('version: "1.2"', "version: 1.2"), "line 6, version: must be text, got 1.2"),
        (("tags: [finance, invoices]", "tags: finance"), "line 7, tags: must be a list of words"),
        (("---\nname", "name"), "the file begins with YAML front matter"),
        (("Start", "\x00"), "NUL"),
        (
            ("{author: Ada}", '{"a\\0b": 1}'),
            "line 9, metadata.a\\x00b: the key contains a NUL character",
        ),
    ],
)
def test_faults_are_named_with_their_line(change: tuple[str, str], fault: str) -> None:
    with pytest.raises(SkillInvalid) as refused:
        parse_skill(TEXT.replace(*change))
    assert any(fault in line for line in refused.value.faults), refused.value.faults


def test_all_faults_are_listed_at_once() -> None:
    with pytest.raises(SkillInvalid, match="the skill has 3 faults") as refused:
        parse_skill("---\nname: 7\nversion: 1\n---\nText")
    assert refused.value.faults == (
        "line 2, name: must be text, got 7; put it in quotes",
        "line 2, description: is required",
        "line 3, version: must be text, got 1; put it in quotes",
    )


def test_an_empty_mapping_is_no_front_matter() -> None:
    with pytest.raises(SkillInvalid, match="line 2: the front matter is empty"):
        parse_skill("---\n{}\n---\nBe brief.\n")


def test_an_empty_body_is_refused() -> None:
    with pytest.raises(SkillInvalid, match="write the instructions"):
        parse_skill("---\nname: empty\ndescription: Nothing.\n---\n\n")


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(SkillInvalid, match="at most 100,000 characters, got 100,"):
        parse_skill(TEXT + "x" * MAX_SKILL_LENGTH)


def test_an_agent_has_at_most_five_skills() -> None:
    check_choice(["a", "b", "c", "d", "e"])
    with pytest.raises(LimitReached, match="at most 5 active skills, got 6"):
        check_choice(["a", "b", "c", "d", "e", "f"])
    with pytest.raises(Invalid, match="'a' is named twice"):
        check_choice(["a", "b", "a"])


def test_skills_that_do_not_fit_are_refused_with_sizes() -> None:
    room = SkillRoom(model="openai/small", window=8_000, reply=2_000, fixed=3_000, situation=1_000)
    check_room({"short": 1_500, "shorter": 500}, room)
    with pytest.raises(
        LimitReached, match=r"2,001 tokens \(short 1,500, long 501\).*openai/small has room for 2,000"
    ):
        check_room({"short": 1_500, "long": 501}, room)


def test_a_link_to_a_missing_skill_is_an_unreadable_file(tmp_path: Path) -> None:
    for name in ("gone", "invoice-review"):
        (tmp_path / name).mkdir()
    (tmp_path / "invoice-review" / "SKILL.md").write_text(TEXT)
    (tmp_path / "gone" / "SKILL.md").symlink_to(tmp_path / "nowhere")
    found = read_folders([tmp_path])
    assert [*found.skills] == ["invoice-review"]
    assert [Path(file.path).parent.name for file in found.unreadable] == ["gone"]
    assert [Path(path).parent.name for path, _, _ in stamp_of([tmp_path])] == ["gone", "invoice-review"]


def test_skills_beyond_the_limit_of_a_folder_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skill_files, "MAX_FILES", 1)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text("no skill", encoding="utf-8")
    first, second = read_folders([tmp_path]).unreadable
    assert (first.path, second.path) == (str(tmp_path / "a" / "SKILL.md"), str(tmp_path / "b" / "SKILL.md"))
    assert second.fault == "not read: a folder has at most 1 skills"
