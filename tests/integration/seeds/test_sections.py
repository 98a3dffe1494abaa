"""Sections of seeds: each table of a tenant has a section, is computed from sections, or is left out for a reason."""

from __future__ import annotations

from apps.fleet.seeds.sections import DERIVED, LEFT_OUT, OTHER_SECTIONS, SECTIONS
from apps.tenants.checks import tenant_models


def test_each_table_is_in_seeds_or_left_out_for_a_reason() -> None:
    carried = [section.model._meta.label for section in SECTIONS]
    named = [*carried, *DERIVED, *LEFT_OUT, *OTHER_SECTIONS]

    assert sorted(named) == sorted(model._meta.label for model in tenant_models())


def test_no_section_carries_a_secret() -> None:
    columns = {str(field.column) for section in SECTIONS for field in section.columns}

    assert not {
        column for column in columns if any(word in column for word in ("sealed", "secret", "private"))
    }


def test_write_once_tables_and_percepts_are_only_appended() -> None:
    appended = {section.name for section in SECTIONS if "DELETE" not in section.model.app_privileges} | {
        "percepts"
    }

    assert {section.name for section in SECTIONS if section.appended} == appended
    assert {section.name for section in SECTIONS if not section.digested} == appended | {"upkeep"}


def test_sections_follow_the_sections_they_refer_to() -> None:
    written: set[str] = set()
    for section in SECTIONS:
        own = section.model._meta.label
        carried = {other.model._meta.label for other in SECTIONS} - {own}
        needed = {target for target, _ in section.references.values()} & carried
        assert needed <= written, f"{section.name} is written before {needed - written}"
        written.add(own)
