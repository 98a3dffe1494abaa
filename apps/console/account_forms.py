"""The form of a new account."""

from __future__ import annotations

from django import forms
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from apps.fleet.accounts import create_account
from apps.tenants.models import User
from arbor.errors import AlreadyExists, Invalid


class NewAccountForm(forms.Form):
    """The form of a new account, without memberships."""

    username = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget())
    password = forms.CharField(
        max_length=1000,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="At least 8 characters, and not a common password.",
    )
    superuser = forms.BooleanField(
        label="Runs the installation as a whole", required=False, widget=UnfoldBooleanWidget()
    )

    def create(self, *, actor: str) -> User | None:
        """Create the account; none, with the reason beside the form, when the service refuses."""
        try:
            return create_account(actor=actor, **self.cleaned_data)
        except (AlreadyExists, Invalid) as refusal:
            self.add_error(None, str(refusal))
            return None
