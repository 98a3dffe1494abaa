"""The operation that creates the tables of an app at once."""

from __future__ import annotations

from django.db import connections, models
from django.db.migrations.operations import CreateModel
from django.db.migrations.state import ProjectState

from apps.tenants.scope import OWNER
from apps.tenants.table_creation import CreateModels

#: Two models that refer to each other.
CYCLE = CreateModels(
    [
        CreateModel(
            name,
            [
                ("id", models.AutoField(primary_key=True)),
                ("other", models.ForeignKey(f"ring.{other}", models.CASCADE, related_name="+")),
            ],
        )
        for name, other in (("Left", "Right"), ("Right", "Left"))
    ]
)


def collect_sql(*, forwards: bool) -> list[str]:
    without, having = ProjectState(), ProjectState()
    CYCLE.state_forwards("ring", having)
    with connections[OWNER].schema_editor(collect_sql=True) as editor:
        if forwards:
            CYCLE.database_forwards("ring", editor, without, having)
        else:
            CYCLE.database_backwards("ring", editor, having, without)
    return [line for line in editor.collected_sql if not line.startswith("--")]


def test_models_that_refer_to_each_other_are_created(database: None) -> None:
    created = "\n".join(collect_sql(forwards=True))
    assert created.count("CREATE TABLE") == 2
    assert 'REFERENCES "ring_left"' in created
    assert 'REFERENCES "ring_right"' in created
    assert created.rindex("CREATE TABLE") < created.index("REFERENCES")


def test_tables_are_dropped_in_reverse(database: None) -> None:
    dropped = [line for line in collect_sql(forwards=False) if line.startswith("DROP TABLE")]
    assert [name in line for name, line in zip(("ring_right", "ring_left"), dropped, strict=True)] == [
        True
    ] * 2


def test_added_models_are_rendered_only_when_they_are_used() -> None:
    state = ProjectState()
    assert list(state.apps.get_models()) == []
    CYCLE.state_forwards("ring", state)
    assert "apps" not in vars(state)
    assert state.apps.get_model("ring.left")
    assert CYCLE.describe() == "Create 2 models"
