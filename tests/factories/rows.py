"""The bases of all factories: of a tenant's rows, and of rows without a tenant."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import factory
from django.db.models import Model
from django.utils import timezone
from factory.django import DjangoModelFactory

from apps.tenants.scope import current_tenant


def minutes_ago(minutes: int) -> datetime:
    return timezone.now() - timedelta(minutes=minutes)


class RowFactory[M: Model](DjangoModelFactory[M]):
    class Meta:
        abstract = True

    if TYPE_CHECKING:
        # Calling a factory creates a row, by factory-boy's metaclass, which has no annotations.
        def __new__(cls, **fields: Any) -> M: ...  # type: ignore[misc]  # a factory has no instances


class TenantRowFactory[M: Model](RowFactory[M]):
    class Meta:
        abstract = True

    tenant_id = factory.LazyFunction(current_tenant)
