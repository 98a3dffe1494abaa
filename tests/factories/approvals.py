"""Requests for approval, for tests."""

from __future__ import annotations

from datetime import timedelta

import factory
from django.utils import timezone

from apps.authority.models import ActionApproval
from arbor.authority.grants import action_resource
from arbor.authority.requests import body_hash, canonical_body
from tests.factories.agents import AgentRowFactory
from tests.factories.rows import minutes_ago

#: Parameters as `decide` completes them.
PARAMS = {"content": "The reef is charted.", "intent": "they asked for it"}


class ActionApprovalFactory(AgentRowFactory[ActionApproval]):
    class Meta:
        model = ActionApproval

    action = "reach_out_public"
    resource = factory.LazyAttribute(lambda o: action_resource(o.action))
    body = canonical_body(PARAMS).decode()
    body_hash = body_hash(PARAMS)
    about = PARAMS["content"]
    reasoning = "worth it"
    why = "it waits for a person's approval: ask by the rule arbor://actions/execute/reach_out_public"
    asked_at = factory.LazyFunction(lambda: minutes_ago(5))
    expires_at = factory.LazyFunction(lambda: timezone.now() + timedelta(days=7))
