"""API tokens and idempotent requests for tests."""

from __future__ import annotations

import hashlib

import factory

from apps.access.models import ApiToken, IdempotentRequest
from tests.factories.rows import TenantRowFactory, minutes_ago


class ApiTokenFactory(TenantRowFactory[ApiToken]):
    class Meta:
        model = ApiToken

    name = factory.Sequence(lambda n: f"token {n}")
    prefix = factory.Sequence(lambda n: f"arbor_{n:08}")
    token_hash = factory.LazyAttribute(lambda o: hashlib.sha256(o.prefix.encode()).digest())
    created_by = "user:ann"
    last_used_at = factory.LazyFunction(lambda: minutes_ago(5))


class IdempotentRequestFactory(TenantRowFactory[IdempotentRequest]):
    class Meta:
        model = IdempotentRequest

    token = factory.SubFactory(ApiTokenFactory)
    key = factory.Sequence(lambda n: f"key-{n}")
    request_hash = factory.LazyAttribute(lambda o: hashlib.sha256(o.key.encode()).digest())
    status = 201
    body = b"{}"
