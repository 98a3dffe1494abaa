"""The form that people sign in with: audited, and refused for a while after too many failures."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from unfold.forms import AuthenticationForm

from apps.console.access import address_of
from apps.fleet.sign_in import record_failed_sign_in, record_sign_in, require_sign_in_allowed
from apps.tenants.models import User
from arbor.errors import LimitReached

#: The code of the error of a sign-in that was not tried.
BLOCKED = "blocked"


class SignInForm(AuthenticationForm):  # type: ignore[misc]
    """Checks a name and a password, unless too many were wrong lately."""

    def clean(self) -> dict[str, Any]:
        """Authenticate, and audit the result."""
        username, address = self.cleaned_data.get("username"), address_of(self.request)
        if not username or not self.cleaned_data.get("password"):
            return dict(self.cleaned_data)
        try:
            require_sign_in_allowed(username=username, address=address)
        except LimitReached as error:
            raise ValidationError(str(error), code=BLOCKED) from error
        try:
            cleaned: dict[str, Any] = super().clean()
        except ValidationError:
            record_failed_sign_in(username=username, address=address)
            raise
        user = self.get_user()
        assert isinstance(user, User)
        record_sign_in(user=user, address=address)
        return cleaned
