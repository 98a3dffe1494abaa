"""The form that makes a channel."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.db import transaction
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from apps.agents.models import Agent
from apps.contacts.services.channels import NAME_LENGTH, TARGET_LENGTH, NewChannel, add_channel
from apps.tenants.scope import APP
from arbor.contacts.values import Audience, ChannelKind
from arbor.errors import AlreadyExists, Invalid

#: Agents offered; of more, the command line takes the name.
_OFFERED = 500


class NewChannelForm(forms.Form):
    """The form of a new channel."""

    name = forms.CharField(max_length=NAME_LENGTH, widget=UnfoldAdminTextInputWidget())
    kind = forms.ChoiceField(
        choices=[(kind.value, kind.value) for kind in ChannelKind if kind is not ChannelKind.PEER],
        widget=UnfoldAdminSelectWidget(),
    )
    target = forms.CharField(
        label="To",
        required=False,
        max_length=TARGET_LENGTH,
        widget=UnfoldAdminTextInputWidget(),
        help_text="An e-mail address or a URL; nothing for the inbox.",
    )
    audience = forms.ChoiceField(
        choices=[(audience.value, audience.value) for audience in Audience],
        widget=UnfoldAdminSelectWidget(),
        help_text="Which messages leave by it: those to the agent's users, or those in public.",
    )
    agent = forms.ChoiceField(
        required=False,
        widget=UnfoldAdminSelectWidget(),
        help_text="Empty: of all agents that have none of their own for this audience.",
    )

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        field = self.fields["agent"]
        assert isinstance(field, forms.ChoiceField)
        agents = Agent.objects.order_by("name").values_list("id", "name")[:_OFFERED]
        field.choices = [("", "all agents"), *((str(agent_id), name) for agent_id, name in agents)]

    def create(self, *, actor: str) -> NewChannel | None:
        """Make the channel; none, with the reason beside the form, when the service refuses."""
        wanted = self.cleaned_data
        try:
            with transaction.atomic(using=APP):
                return add_channel(
                    name=wanted["name"],
                    kind=ChannelKind(wanted["kind"]),
                    audience=Audience(wanted["audience"]),
                    target=wanted["target"],
                    agent_id=UUID(wanted["agent"]) if wanted["agent"] else None,
                    actor=actor,
                )
        except (Invalid, AlreadyExists) as refusal:
            self.add_error(None, str(refusal))
            return None
