"""What all factories of a tenant's rows have in common."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import factory
from django.utils import timezone
from factory.django import DjangoModelFactory

from apps.tenants.scope import current_tenant


def ago(minutes: int) -> datetime:
    return timezone.now() - timedelta(minutes=minutes)


class TenantRowFactory(DjangoModelFactory[Any]):
    class Meta:
        abstract = True

    tenant_id = factory.LazyFunction(current_tenant)
