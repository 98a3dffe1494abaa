"""What people do to their own account: they sign in and change their password, as the serving role."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from apps.fleet.administration import create_account
from apps.tenants.models import User

OLD, NEW = "a long river to the sea", "a longer river to the sea"


def test_a_person_signs_in_and_changes_their_password(database: None) -> None:
    create_account(username="ann", password=OLD, actor="cli:tests")
    client = Client()
    client.post(reverse("admin:login"), {"username": "ann", "password": OLD})
    assert User.objects.get().last_login is not None
    changed = client.post(
        reverse("admin:password_change"), {"old_password": OLD, "new_password1": NEW, "new_password2": NEW}
    )
    assert changed.status_code == 302
    user = User.objects.get()
    assert user.check_password(NEW)
    assert client.get(reverse("admin:index")).status_code == 200
