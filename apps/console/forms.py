"""Forms that create and destroy agents and create channels, and the base of forms that call a service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from apps.agents.models import Agent, BuiltinTemplate, Template
from apps.agents.services.lookup import NAME_LENGTH, find_agent
from apps.console.pages.models import model_suggestions
from apps.contacts.services.channels import NAME_LENGTH as CHANNEL_NAME_LENGTH
from apps.contacts.services.channels import TARGET_LENGTH, ChannelWithSecret, add_channel
from apps.fleet.creation import LONGEST_INTERVAL, create_agent
from apps.fleet.lifecycle import destroy_agent, start_agent
from apps.tenants.scope import APP
from arbor.contacts.values import Audience, ChannelKind
from arbor.errors import AlreadyExists, ArborError, IdentityRefused, Invalid, NotFound


class ServiceForm(forms.Form):
    """A form that calls a service, whose refusal is shown among the errors of the form."""

    @contextmanager
    def refusals(self, *kinds: type[ArborError]) -> Iterator[None]:
        """Run a block in a transaction; an error of these kinds rolls it back and becomes an error of the form."""
        try:
            with transaction.atomic(using=APP):
                yield
        except kinds as refusal:
            self.add_error(None, str(refusal))


class NewAgentForm(ServiceForm):
    """The form of a new agent."""

    name = forms.CharField(max_length=NAME_LENGTH, widget=UnfoldAdminTextInputWidget())
    template = forms.ChoiceField(
        widget=UnfoldAdminSelectWidget(),
        help_text="It determines the character, the first goals and the allowed actions.",
    )
    interval_s = forms.IntegerField(
        label="Seconds between heartbeats",
        required=False,
        min_value=1,
        max_value=int(LONGEST_INTERVAL.total_seconds()),
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text="Empty: the template's, else the installation's.",
    )
    model = forms.CharField(
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "provider/model", "list": "models"}),
        help_text="Empty: the template's, else the tenant's default, else the installation's. reflex/policy needs no model.",
    )
    start = forms.BooleanField(
        label="Start it at once", required=False, initial=True, widget=UnfoldBooleanWidget()
    )

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        field = self.fields["template"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = _templates()
        #: The models that the field for the model suggests.
        self.models = model_suggestions()

    def create(self, *, actor: str) -> Agent | None:
        """Create the agent; None, with the reason in the form's errors, if the service refuses."""
        wanted = self.cleaned_data
        with self.refusals(Invalid, AlreadyExists):
            agent = create_agent(
                name=wanted["name"],
                template_name=wanted["template"],
                actor=actor,
                interval=timedelta(seconds=wanted["interval_s"]) if wanted["interval_s"] else None,
                model=wanted["model"].strip(),
            )
            return start_agent(agent_id=agent.id, actor=actor) if wanted["start"] else agent
        return None


def _templates() -> list[tuple[str, str]]:
    """Return the choices of templates; only names and versions are read, because a template may be unreadable."""
    own = [(name, f"{name} {version}") for name, version in Template.objects.values_list("name", "version")]
    hidden = {name.casefold() for name, _ in own}
    builtin = [
        (name, f"{name} {version} (built in)")
        for name, version in BuiltinTemplate.objects.values_list("name", "version")
        if name.casefold() not in hidden
    ]
    return sorted([*own, *builtin], key=lambda choice: choice[0].casefold())


class DestroyAgentForm(ServiceForm):
    """The form that confirms the destruction of an agent by its name."""

    confirm = forms.CharField(
        label="Its name", widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})
    )
    saves_seed = forms.BooleanField(
        label="Save a seed of it for 30 days",
        required=False,
        initial=True,
        widget=UnfoldBooleanWidget(),
    )

    def destroy(self, *, agent: Agent, actor: str) -> dict[str, int] | None:
        """Destroy the agent; None, with the reason in the form's errors, if the service refuses."""
        with self.refusals(Invalid, IdentityRefused):
            return destroy_agent(
                agent_id=agent.id,
                confirm=self.cleaned_data["confirm"],
                actor=actor,
                saves_seed=self.cleaned_data["saves_seed"],
            )
        return None


#: The most agents that forms suggest or offer; a field for a name accepts any.
_AGENTS_OFFERED = 500


def agent_choices() -> list[tuple[str, str]]:
    """Return the agents that forms suggest or offer, by name."""
    agents = Agent.objects.order_by("name").values_list("id", "name")[:_AGENTS_OFFERED]
    return [(str(agent_id), name) for agent_id, name in agents]


def chosen_agent(parameters: Mapping[str, str]) -> Agent | None:
    """Return the agent that the parameter `agent` of an address or a form names, by its id or name; None without such an agent."""
    return agent_named(parameters.get("agent", ""))


def agent_named(text: str) -> Agent | None:
    """Return the agent of this id or name, as commands find it; None without such an agent."""
    try:
        return find_agent(text)
    except NotFound:
        return None


class _AgentInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]
    """A text field that suggests the names of agents."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Write the field, and the list of suggestions after it."""
        field = super().render(
            name,
            value,
            {**(attrs or {}), "list": "agent-names", "placeholder": "name or id", "autocomplete": "off"},
            renderer,
        )
        names = format_html_join(
            "", '<option value="{}"></option>', ((option,) for _, option in agent_choices())
        )
        return format_html('{}<datalist id="agent-names">{}</datalist>', field, names)


class AgentField(forms.CharField):
    """The name or id of an agent, because a tenant may have more agents than a form can offer; cleaned to the id, None for none."""

    widget = _AgentInput

    def clean(self, value: Any) -> UUID | None:
        """Return the id of the agent. Raises ValidationError if there is none."""
        text = super().clean(value)
        agent = agent_named(text)
        if text and agent is None:
            raise ValidationError(f"there is no agent {text!r}; write its name or id")
        return agent.id if agent is not None else None


class NewChannelForm(ServiceForm):
    """The form of a new channel."""

    name = forms.CharField(max_length=CHANNEL_NAME_LENGTH, widget=UnfoldAdminTextInputWidget())
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
        help_text="Messages that the channel delivers: those to the agent's users, or those in public.",
    )
    agent = AgentField(
        required=False,
        help_text="Empty: all agents without a channel of their own for this audience.",
    )

    def create(self, *, actor: str) -> ChannelWithSecret | None:
        """Create the channel; None, with the reason in the form's errors, if the service refuses."""
        wanted = self.cleaned_data
        with self.refusals(Invalid, AlreadyExists):
            return add_channel(
                name=wanted["name"],
                kind=ChannelKind(wanted["kind"]),
                audience=Audience(wanted["audience"]),
                target=wanted["target"],
                agent_id=wanted["agent"],
                actor=actor,
            )
        return None
