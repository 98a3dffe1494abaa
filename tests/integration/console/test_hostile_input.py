"""Every list and form of the console, given NUL, half surrogates, and numbers and dates out of range."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.template.response import TemplateResponse
from django.test import Client
from django.urls import reverse

from apps.tenants.models import User
from tests.support.console import World, list_of

#: Values, as written in an address or in the body of a form.
HOSTILE = ("a%00b", "%ED%A0%80", "9" * 30, "-1", "99999-99-99", "NaN", "x" * 20_000)

#: The query of Django's redirect from a filter that it cannot read.
REFUSED = "e=1"


def post(client: Client, address: str, fields: str) -> Any:
    return client.post(address, fields, content_type="application/x-www-form-urlencoded", follow=True)


def lists() -> dict[str, list[str]]:
    """Return the address of each list with the names of its filters."""
    found = {}
    for model, model_admin in admin.site._registry.items():
        names = ["agent__id__exact"]
        for entry in getattr(model_admin, "list_filter", ()):
            name = entry[0] if isinstance(entry, tuple) else entry
            if isinstance(name, str) and name != "agent":
                names.append(f"{name}__exact")
        found[list_of(model)] = names
    assert len(found) > 50
    return found


def read_rows(response: TemplateResponse) -> str:
    """Read the rows of a list as its template does; return their number instead of a page."""
    found = (response.context_data or {}).get("cl")
    return f"{len(found.result_list)} rows" if found else ""


def test_a_cookie_that_names_no_session_leads_to_the_sign_in(world: World) -> None:
    # Quoted cookies may contain any character as an octal number.
    for key in (r'"\000aaaaaaaa"', r'"\377aaaaaaaa"', "x" * 5_000):
        response = Client().get(reverse("admin:index"), headers={"Cookie": f"sessionid={key}"})
        assert response.status_code == 302


@pytest.mark.parametrize("value", HOSTILE[:-1])
def test_no_list_fails_on_a_hostile_address(
    chief: Client, world: World, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    index = reverse("admin:index")
    if value not in HOSTILE[:2]:
        # Templates show the others like any text.
        monkeypatch.setattr(TemplateResponse, "rendered_content", property(read_rows))
    for page, names in lists().items():
        for address in (
            f"{page}?" + "&".join(f"{name}={value}" for name in names),
            f"{page}?q={value}&p={value}&o={value}",
            f"{page}{value}/change/",
        ):
            answer = chief.get(address)
            assert answer.status_code < 500, address
            # The first page shows the messages; the next test opens the lists that refused a filter.
            assert answer.get("Location", index) in (index, f"{page}?{REFUSED}"), address
    assert chief.get(index).status_code == 200


def test_every_list_opens_when_its_filter_is_refused(chief: Client, world: World) -> None:
    for page in lists():
        assert chief.get(f"{page}?{REFUSED}").status_code == 200, page


@pytest.mark.parametrize("value", HOSTILE)
def test_no_form_fails_on_hostile_values(chief: Client, world: World, value: str) -> None:
    user = User.objects.get(username="chief")
    fields = {
        reverse("admin:agents_agent_add"): "name={0}&template=Scout&interval_s={0}&model={0}",
        reverse("admin:agents_agent_delete", args=[world.agent.id]): "name={0}&confirm={0}",
        reverse("admin:contacts_hook_add"): "name={0}&agent={0}&kind=json&title={0}&sample={0}&act=try",
        reverse("admin:contacts_signalwebhook_add"): "name={0}&url={0}&signals={0}&agent={0}",
        reverse("admin:contacts_channel_add"): "name={0}&kind=webhook&target={0}&audience=user&agent={0}",
        reverse("admin:agent-act", args=[world.agent.id]): "act={0}",
        world.chat_page: "text={0}&message={0}&conversation={0}",
        reverse("admin:tenant-choose"): "tenant={0}",
        reverse("admin:tenant-visit"): "tenant={0}&reason={0}",
        reverse("admin:own-sessions"): "session={0}",
        reverse("admin:user-act", args=[user.pk]): "act=password&password={0}x",
        reverse("admin:tenants_user_add"): "username={0}&password={0}",
        reverse("admin:tools_toolserver_add"): "name={0}&url={0}&secret={0}",
        reverse("admin:member-add"): "username={0}&role={0}",
        reverse("admin:password_change"): "old_password={0}&new_password1={0}&new_password2={0}",
    }
    for row in world.rows:
        label = row._meta.label_lower
        if label == "contacts.outboxmessage":
            fields[reverse("admin:message-act", args=[row.pk])] = "act=answer&text={0}"
        if label == "contacts.signalwebhook":
            fields[reverse("admin:webhook-act", args=[row.pk])] = "act={0}"
        if label == "tools.toolserver":
            fields[reverse("admin:tool-server-act", args=[row.pk])] = "act={0}"
        if label == "tools.tool":
            allow = "act=allow&cost={0}&for=chosen&agent={0}&fingerprint={0}"
            fields[reverse("admin:tool-act", args=[row.pk])] = allow
        if label == "contacts.hook":
            fields[reverse("admin:hook-act", args=[row.pk])] = "act={0}"
            fields[reverse("admin:hook-edit", args=[row.pk])] = (
                "events={0}&title={0}&urgent_from={0}&sample={0}&act=try"
            )
            fields[reverse("admin:hook-rotate", args=[row.pk])] = "secret={0}"
        if label == "contacts.hookdelivery":
            fields[reverse("admin:delivery-act", args=[row.pk])] = "act={0}"
        if label == "contacts.channel":
            fields[reverse("admin:channel-act", args=[row.pk])] = "act={0}"
    for address, text in fields.items():
        # A new password would sign the person out.
        chief.force_login(User.objects.get(pk=user.pk))
        answer = post(chief, address, text.format(value))
        assert answer.status_code < 500, address
    assert post(Client(), reverse("admin:login"), f"username={value}&password={value}").status_code < 500


def test_an_address_out_of_range_is_answered(chief: Client, world: World) -> None:
    for query in ("before=%00", "before=" + "9" * 40, "unread=%00"):
        assert chief.get(f"{reverse('admin:inbox')}?{query}").status_code < 500, query
    for query in ("conversation=%00", "before=%00", "conversation=" + "9" * 40):
        assert chief.get(f"{world.chat_page}?{query}").status_code < 500, query
    for term in ("%00", "%ED%A0%80", "x" * 5_000):
        for query in (
            f"app_label=memories&model_name=memory&field_name=agent&term={term}",
            f"app_label={term}",
        ):
            assert chief.get(f"{reverse('admin:autocomplete')}?{query}").status_code < 500, query
    assert chief.get(reverse("admin:user-act", args=[9**30])).status_code < 500
    assert post(chief, reverse("admin:user-act", args=[9**30]), "act=disable").status_code < 500
