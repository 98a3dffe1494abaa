"""The first page tells those who run the installation where maintenance is behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.test import Client
from django.urls import reverse

from apps.memories.models import JobRun
from apps.memories.services.jobs.rounds import record_job_run
from apps.tenants.models import Role, User
from apps.tenants.services import add_member
from tests.factories.users import UserFactory
from tests.support.console import World, sign_in

LATE = "The job arbor.decay.fade_memories has not succeeded for 2 h"


def first_page(client: Client) -> str:
    return str(client.get(reverse("admin:index")).content.decode())


def test_only_they_see_it(owner: Client, world: World) -> None:
    record_job_run(name="arbor.decay.fade_memories", period_s=300, seconds=1)
    JobRun.objects.update(succeeded_at=datetime.now(UTC) - timedelta(hours=2))
    chief: User = UserFactory(username="chief", is_superuser=True)
    add_member(tenant=world.tenant, user=chief, role=Role.OWNER)
    assert LATE in first_page(sign_in(chief))
    assert LATE not in first_page(owner)
