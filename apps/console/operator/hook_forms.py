"""Forms of hooks and of webhooks."""

from __future__ import annotations

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from apps.console.forms import AgentField, ServiceForm
from apps.console.pages.hooks import latest_body
from apps.contacts.models import Hook
from apps.contacts.services import signal_webhooks
from apps.contacts.services.hooks import (
    NAME_LENGTH,
    HookWithSecret,
    NewHook,
    change_hook,
    create_hook,
    try_mapping,
)
from apps.contacts.services.signal_webhooks import WebhookWithSecret, create_webhook
from arbor.contacts.hook_signatures import MAX_SECRET
from arbor.contacts.hook_templates import TEMPLATE_LENGTH
from arbor.contacts.hooks import HookKind, HookMapping, HookMessage
from arbor.errors import AlreadyExists, Invalid, NotFound

#: Characters of a sample body.
SAMPLE_LENGTH = 100_000
_KINDS = [(HookKind.GITHUB.value, "GitHub"), (HookKind.JSON.value, "JSON of any system")]
_MAPPING_HELP = {
    "event": "The kind of event, by which events are chosen.",
    "title": "One line.",
    "text": "{} is the whole body.",
    "sender": "The person or system that caused the event.",
    "importance": "0 to 1, or low, normal, high, critical.",
}


def _line(label: str, *, required: bool = False, length: int = 200, **options: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=required,
        max_length=length,
        strip=True,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        **options,
    )


def _names(text: str) -> list[str]:
    """Split a text at commas and line breaks into names."""
    return [name.strip() for name in text.replace("\n", ",").split(",") if name.strip()]


class MappingForm(ServiceForm):
    """The events of a hook, its urgency, and the mapping of JSON, with a sample to try it."""

    events = _line(
        "Events",
        length=2_000,
        help_text="Separated by commas, such as issues.opened, push; empty: all. issues means all of its actions.",
    )
    urgent_from = forms.FloatField(
        label="Urgent from importance",
        required=False,
        min_value=0,
        max_value=1,
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "decimal"}),
        help_text="0 to 1: such deliveries start the agent's next heartbeat at once. Empty: none does.",
    )
    event = _line("Mapping of the event", length=TEMPLATE_LENGTH, help_text=_MAPPING_HELP["event"])
    title = _line("Mapping of the title", length=TEMPLATE_LENGTH, help_text=_MAPPING_HELP["title"])
    text = forms.CharField(
        label="Mapping of the text",
        required=False,
        max_length=TEMPLATE_LENGTH,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text=_MAPPING_HELP["text"],
    )
    sender = _line("Mapping of the sender", length=TEMPLATE_LENGTH, help_text=_MAPPING_HELP["sender"])
    importance = _line(
        "Mapping of the importance", length=TEMPLATE_LENGTH, help_text=_MAPPING_HELP["importance"]
    )
    sample = forms.CharField(
        label="A sample of a body",
        required=False,
        max_length=SAMPLE_LENGTH,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 6, "spellcheck": "false"}),
        help_text="JSON, to try the mapping. It is not saved.",
    )

    def mapping(self) -> dict[str, str]:
        """Return the templates of the form."""
        return {name: self.cleaned_data[name] for name in _MAPPING_HELP}

    def trial(self) -> HookMessage | None:
        """Return the message that the sample would give; None, with the reason in the form's errors."""
        with self.refusals(Invalid):
            return try_mapping(mapping=self.mapping(), sample=self.cleaned_data["sample"])
        return None

    def change(self, hook: Hook, *, actor: str) -> Hook | None:
        """Change the hook; None, with the reason in the form's errors, if the service refuses."""
        with self.refusals(Invalid):
            return change_hook(
                hook_id=hook.id,
                actor=actor,
                mapping=self.mapping() if hook.kind == HookKind.JSON else None,
                events=_names(self.cleaned_data["events"]),
                urgent_from=self.cleaned_data["urgent_from"],
            )
        return None

    @staticmethod
    def values_of(hook: Hook) -> dict[str, Any]:
        """Return the form's values for a hook, with its latest body as the sample."""
        values = {"events": ", ".join(hook.events), "urgent_from": hook.urgent_from}
        if hook.kind != HookKind.JSON:
            return values
        return {**values, **hook.rules.as_json(), "sample": latest_body(hook)}


class NewHookForm(MappingForm):
    """The form of a new hook."""

    name = _line("Name", required=True, length=NAME_LENGTH)
    agent = AgentField(
        help_text="Perceives each delivery, as text of others.",
    )
    kind = forms.ChoiceField(choices=_KINDS, widget=UnfoldAdminSelectWidget())
    signature_header = _line(
        "Header of the signature",
        length=60,
        help_text="Of JSON only, for systems that sign by an HMAC-SHA256 of the body in hexadecimal. Empty: Standard Webhooks.",
    )
    secret = forms.CharField(
        required=False,
        max_length=MAX_SECRET,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        help_text="Only where the sender generates it. Empty: Arbor generates one, and shows it once.",
    )
    field_order = ("name", "agent", "kind", "signature_header", "secret")

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, initial=HookMapping().as_json())

    def create(self, *, actor: str) -> HookWithSecret | None:
        """Create the hook; None, with the reason in the form's errors, if the service refuses."""
        wanted = self.cleaned_data
        kind, mapping = HookKind(wanted["kind"]), self.mapping()
        if kind is HookKind.GITHUB:
            # The fields are filled in for JSON; the service refuses what a person has changed in them.
            mapping = {name: text for name, text in mapping.items() if text not in ("", self.initial[name])}
        new = NewHook(
            name=wanted["name"],
            agent_id=wanted["agent"],
            kind=kind,
            signature_header=wanted["signature_header"],
            mapping=mapping,
            events=_names(wanted["events"]),
            urgent_from=wanted["urgent_from"],
            secret=wanted["secret"],
        )
        with self.refusals(Invalid, AlreadyExists, NotFound):
            return create_hook(new, actor=actor)
        return None


class NewWebhookForm(ServiceForm):
    """The form of a new webhook."""

    name = _line("Name", required=True, length=signal_webhooks.NAME_LENGTH)
    url = _line(
        "URL", required=True, length=signal_webhooks.URL_LENGTH, help_text="The receiver's address, by https."
    )
    signals = _line(
        "Signals",
        length=2_000,
        help_text="Separated by commas; memory.goal_* means all that begin so. Empty: all signals.",
    )
    agent = AgentField(
        required=False,
        help_text="Empty: the signals of all agents.",
    )

    def create(self, *, actor: str) -> WebhookWithSecret | None:
        """Create the webhook; None, with the reason in the form's errors, if the service refuses."""
        wanted = self.cleaned_data
        with self.refusals(Invalid, AlreadyExists):
            return create_webhook(
                name=wanted["name"],
                url=wanted["url"],
                signals=_names(wanted["signals"]),
                agent_id=wanted["agent"],
                actor=actor,
            )
        return None
