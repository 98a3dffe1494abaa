"""Users for tests."""

from __future__ import annotations

from functools import cache
from typing import Any

import factory
from django.contrib.auth.hashers import get_hasher, make_password

from apps.tenants.models import User
from apps.tenants.scope import ACCOUNTS
from tests.factories.rows import RowFactory

#: The password of every user of the factory.
PASSWORD = "correct horse battery staple"


@cache
def _hashed(algorithm: str) -> str:
    # Hashing takes long, so all tests share one hash per algorithm.
    return make_password(PASSWORD, hasher=algorithm)


class UserFactory(RowFactory[User]):
    class Meta:
        model = User
        database = ACCOUNTS
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"person{n}")
    is_staff = True

    @classmethod
    def _create(cls, model_class: Any, *args: Any, **kwargs: Any) -> User:
        user: User = model_class(*args, **kwargs, password=_hashed(get_hasher().algorithm))
        user.save(using=ACCOUNTS)
        return user
