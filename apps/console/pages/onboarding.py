"""The first steps in an installation: a tenant, a model, an agent, a conversation, a heartbeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from apps.agents.models import Agent
from apps.console.pages.fleet import FleetPage
from apps.contacts.models import ChatSession
from apps.heartbeats.models import HeartbeatStatus

#: The most agents of a tenant whose first page shows the steps.
FEW_AGENTS = 3


@dataclass(frozen=True, kw_only=True)
class OnboardingStep:
    """One step: whether it is done, and the page where it is done."""

    key: str
    title: str
    text: str
    done: bool
    #: The URL name of the page, its argument if any, and the label of the link; empty if no page does the step.
    page: str = ""
    argument: str = ""
    label: str = ""
    #: The least role of a member who can do the step.
    role: str = "operator"
    #: Whether the step is the first one that is not done.
    is_next: bool = False


def read_first_steps(fleet: FleetPage | None) -> Sequence[OnboardingStep]:
    """Return all steps of the current tenant; without a tenant, the steps until there is one."""
    signed_in = OnboardingStep(key="sign-in", title="Sign in", text="", done=True)
    if fleet is None:
        return (
            signed_in,
            OnboardingStep(
                key="tenant",
                title="Create a tenant",
                text="A tenant has agents, members and limits of its own; no tenant sees another.",
                done=False,
            ),
        )
    agent = Agent.objects.order_by("id").only("tenant_id", "name").first() if fleet.agent_count else None
    talked = ChatSession.objects.exists()
    steps = (signed_in, *_steps_of_installation(fleet), *_steps_of_agent(fleet, agent, talked=talked))
    first = next((step for step in steps if not step.done), None)
    return [replace(step, is_next=step is first) for step in steps]


def read_onboarding(fleet: FleetPage) -> Sequence[OnboardingStep]:
    """Return the steps for the first page of the tenant; none once an agent has talked and had a heartbeat, or with many agents."""
    talked = ChatSession.objects.exists()
    if fleet.agent_count > FEW_AGENTS or (talked and _has_had_heartbeat(fleet)):
        return ()
    return read_first_steps(fleet)


def _has_had_heartbeat(fleet: FleetPage) -> bool:
    return fleet.done > 0 or any(heartbeat.status == HeartbeatStatus.DONE for heartbeat in fleet.recent)


def _steps_of_installation(fleet: FleetPage) -> Sequence[OnboardingStep]:
    kinds = {process.kind for process in fleet.processes}
    return (
        OnboardingStep(
            key="processes",
            title="Workers run",
            text="They give agents their heartbeats and answer you. The command arbor up starts all of them.",
            done={"worker", "scheduler"} <= kinds,
            page="operations",
            label="Operations",
            role="viewer",
        ),
        OnboardingStep(
            key="model",
            title="Give the agents a model",
            text=(
                "Enter the key of a provider, such as OpenAI or Anthropic, or the address of your own server. It is tried and"
                " stored encrypted. Until then agents decide by fixed rules, which needs no key."
            ),
            done=not fleet.is_reflex,
            page="models",
            label="Enter a key",
            role="owner",
        ),
    )


def _steps_of_agent(fleet: FleetPage, agent: Agent | None, *, talked: bool) -> Sequence[OnboardingStep]:
    name = agent.name if agent else "it"
    return (
        OnboardingStep(
            key="agent",
            title="Create an agent",
            text="Choose a template, which gives it a character, values and first goals, and a name.",
            done=agent is not None,
            page="agents_agent_add",
            label="Create an agent",
        ),
        OnboardingStep(
            key="talk",
            title=f"Talk with {name}",
            text="What you say becomes its memory. Recall then shows what it would remember, and why.",
            done=talked,
            page="agent-chat" if agent else "",
            argument=str(agent.id) if agent else "",
            label="Talk",
        ),
        OnboardingStep(
            key="heartbeat",
            title="See a heartbeat",
            text="At each heartbeat an agent looks at its situation, decides and acts by itself; its page shows why.",
            done=_has_had_heartbeat(fleet),
            page="agents_agent_change" if agent else "",
            argument=str(agent.id) if agent else "",
            label="Open its page",
            role="viewer",
        ),
    )
