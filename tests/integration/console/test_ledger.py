"""The page of costs: model calls by group, and budgets with the time at which they are used up."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from apps.agents.models import AgentPolicy
from apps.calls.models import DailyUsage
from apps.calls.services import usage
from apps.console import forms
from apps.console.operator import ledger as operator_ledger
from apps.console.pages import ledger
from apps.console.pages.ledger import LedgerPage, read_ledger
from apps.console.templatetags.console import dollars, short_count
from apps.fleet.administration import limit_tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory, AgentPolicyFactory
from tests.factories.heartbeats import (
    DailyUsageFactory,
    ExternalCallFactory,
    HeartbeatFactory,
    LedgerEntryFactory,
)
from tests.support.console import World, page_of


def read(world: World, query: str, now: datetime | None = None) -> LedgerPage:
    with tenant_transaction(world.tenant.id):
        return read_ledger(QueryDict(query), now=now)


@pytest.fixture
def entries(world: World) -> None:
    with tenant_transaction(world.tenant.id):
        for model, cost, tries, error in (
            ("dear", "0.5", 3, ""),
            ("dear", "0.25", 1, "ModelTimeout"),
            ("cheap", "0.001", 1, ""),
        ):
            LedgerEntryFactory(
                call__heartbeat=world.heartbeat,
                provider="openai",
                model=model,
                cost_usd=Decimal(cost),
                tries=tries,
                error_kind=error,
                input_tokens=100,
                output_tokens=10,
                latency_ms=400,
            )


@pytest.mark.usefixtures("entries")
def test_calls_are_grouped_by_model_agent_purpose_and_day(world: World) -> None:
    dear = next(group for group in read(world, "by=model").groups if group.title == "openai/dear")
    assert (dear.calls, dear.failed, dear.retries) == (2, 1, 2)
    assert (dear.input_tokens, dear.output_tokens) == (200, 20)
    assert dear.cost == Decimal("0.75")
    assert dear.latency_ms == 400
    assert read(world, "by=model").groups[0] == dear
    assert world.agent.name in [group.title for group in read(world, "by=agent").groups]
    assert "think" in [group.title for group in read(world, "by=purpose").groups]
    (today,) = read(world, "by=day").groups
    assert today.title == f"{datetime.now(UTC):%Y-%m-%d}"
    assert today.calls == read(world, "by=day").total.calls >= 3


@pytest.mark.usefixtures("entries")
def test_the_chart_has_a_bar_for_each_hour_or_day(world: World) -> None:
    for days, count in (("1", 25), ("7", 8), ("30", 31)):
        page = read(world, f"days={days}")
        assert len(page.bars) == count
        assert page.bars[-1].value >= 0.75
        assert page.bars[-1].height == 100
        assert page.priced


def test_the_bars_of_the_chart_are_the_sums_of_the_page(world: World) -> None:
    with tenant_transaction(world.tenant.id):
        entry = LedgerEntryFactory(call__heartbeat=world.heartbeat, cost_usd=Decimal("0.5"))
    for days in (1, 7):
        page = read(world, f"days={days}", entry.at + timedelta(days=days, seconds=-1))
        assert sum(bar.value for bar in page.bars) == pytest.approx(float(page.total.cost or 0))


def test_an_agent_beyond_the_offered_ones_is_chosen_by_name(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "_AGENTS_OFFERED", 0)
    for name in ("model-usage", "recall", "self-versions", "graph", "memory-quotas", "search-sources"):
        for choice in (str(world.agent.id), world.agent.name):
            response = viewer.get(reverse(f"admin:{name}"), {"agent": choice})
            assert response.context["page"].agent == world.agent, name
            assert f'name="agent" list="agent-names" value="{world.agent.name}"' in response.content.decode()
        assert (
            "There is no such agent"
            in viewer.get(reverse(f"admin:{name}"), {"agent": "Nobody"}).content.decode()
        )


@pytest.mark.usefixtures("entries")
def test_an_export_has_the_groups_that_the_page_leaves_out(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = [group.title for group in read(world, "by=model").groups]
    monkeypatch.setattr(operator_ledger, "GROUPS_SHOWN", 1)
    page = viewer.get(reverse("admin:model-usage"), {"by": "model"})
    assert [group.title for group in page.context["page"].groups] == everything[:1]
    assert 'id="more-groups"' in page.content.decode()
    exported: Any = viewer.get(reverse("admin:model-usage"), {"by": "model", "export": "json"})
    rows = json.loads(b"".join(exported.streaming_content))
    assert [row["model"] for row in rows] == everything


def test_a_bar_of_calls_without_a_price_is_not_of_free_ones(world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory()
        LedgerEntryFactory(call=ExternalCallFactory(heartbeat=HeartbeatFactory(agent=agent)), cost_usd=None)
    titles = [bar.title for bar in read(world, f"days=7&agent={agent.id}").bars]
    assert titles[-1].endswith("price unknown")
    assert titles[0].endswith("0 calls, 0 tokens, $0")


@pytest.mark.usefixtures("entries")
def test_the_page_opens_with_valid_and_invalid_choices(viewer: Client, world: World) -> None:
    for query in ({}, {"by": "agent", "days": "1", "agent": str(world.agent.id)}, {"by": "x", "days": "-1"}):
        response = viewer.get(reverse("admin:model-usage"), query)
        assert response.status_code == 200
    text = viewer.get(reverse("admin:model-usage"), {"by": "model"}).content.decode()
    assert 'data-group="openai/dear"' in text
    assert "Nothing is limited" in text


def test_budgets_show_their_use_and_the_time_of_their_end(world: World) -> None:
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    limit_tenant(slug="acme", limits={"daily_heartbeats": 100, "daily_tokens": 10_000}, actor="cli:tests")
    with tenant_transaction(world.tenant.id):
        DailyUsage.objects.all().delete()
        AgentPolicy.objects.update_or_create(
            agent=world.agent, tenant_id=world.tenant.id, defaults={"daily_usd": Decimal(2)}
        )
        DailyUsage.objects.create(
            tenant_id=world.tenant.id,
            agent=world.agent,
            day=noon.date(),
            heartbeats=80,
            tokens=100,
            cost_usd=Decimal(2),
            level="halt",
        )
    usage._sums.clear()
    page = read(world, f"agent={world.agent.id}", noon)
    heartbeats, tokens = page.tenant_budget
    assert (heartbeats.used, heartbeats.limit, heartbeats.tone) == (80, 100, "warn")
    assert heartbeats.ends_at == noon.replace(hour=15)
    assert (tokens.ends_at, tokens.tone) == (None, "good")
    (dollars,) = [line for line in page.agent_budget if line.what == "US dollars"]
    assert (dollars.share, dollars.tone) == (1.0, "bad")
    assert [low.agent.name for low in page.low] == [world.agent.name]


def test_the_lowest_budgets_are_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "LOW_SHOWN", 2)
    with tenant_transaction(world.tenant.id):
        DailyUsage.objects.all().delete()
        for level in ("conservation", "degradation", "halt", "end_times", "normal"):
            DailyUsage.objects.create(
                tenant_id=world.tenant.id,
                agent=AgentFactory(name=f"At {level}"),
                day=datetime.now(UTC).date(),
                level=level,
            )
    assert [low.agent.name for low in read(world, "").low] == ["At halt", "At end_times"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (9_999, "9,999"),
        (10_000, "10k"),
        (123_456, "123k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (1_234_567, "1.23M"),
        (999_900_000, "1B"),
    ],
)
def test_large_numbers_have_three_digits_and_a_letter(number: int, text: str) -> None:
    assert short_count(number) == text


def test_an_agent_without_calls_costs_nothing(world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory()
    total = read(world, f"agent={agent.id}").total
    assert (total.calls, total.cost) == (0, Decimal(0))


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        ("0", "$0"),
        ("0.00000078", "$0.00000078"),
        ("0.00078", "$0.0008"),
        ("0.5", "$0.5000"),
        ("1234.5", "$1,234.50"),
    ],
)
def test_a_cost_above_zero_is_not_written_as_zero(cost: str, text: str) -> None:
    assert dollars(Decimal(cost)) == text


def test_commands_name_an_agent_as_one_argument(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory(name="Vega two")
    text = unescape(viewer.get(reverse("admin:model-usage"), {"agent": "Vega two"}).content.decode())
    assert "arbor agent policy set 'Vega two' --daily-usd" in text
    assert "--agent 'Vega two'" in unescape(viewer.get(page_of(agent)).content.decode())


def test_small_costs_are_written_alike_on_all_pages(viewer: Client, world: World) -> None:
    cost = "$0.00000078"
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory()
        LedgerEntryFactory(
            call=ExternalCallFactory(heartbeat=HeartbeatFactory(agent=agent)), cost_usd=Decimal("0.00000078")
        )
        DailyUsageFactory(agent=agent, cost_usd=Decimal("0.00000078"))
        AgentPolicyFactory(agent=agent, daily_usd=Decimal(1))
    page = read(world, f"agent={agent.id}")
    assert [bar.title.rpartition(", ")[2] for bar in page.bars][-1] == cost
    assert [line.amounts for line in page.agent_budget if "dollars" in line.what] == [f"{cost} of $1.00"]
    for address in (
        page_of(agent),
        reverse("admin:calls_ledgerentry_changelist"),
        reverse("admin:calls_dailyusage_changelist"),
    ):
        assert cost in viewer.get(address).content.decode(), address


def test_costs_of_other_tenants_are_not_shown(viewer: Client, world: World, other_world: World) -> None:
    response = viewer.get(reverse("admin:model-usage"), {"agent": str(other_world.agent.id), "by": "agent"})
    assert other_world.agent.name not in response.content.decode()
    assert response.context["page"].agent is None


def test_a_member_of_no_tenant_sees_no_costs(root: Client, world: World) -> None:
    assert root.get(reverse("admin:model-usage")).status_code == 403
