"""The steps of a new tenant: a model, an agent, a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.agents.models import Agent
from apps.console.pages.fleet import FleetPage
from apps.contacts.models import ChatSession

#: A tenant with more agents needs no steps.
FEW_AGENTS = 3


@dataclass(frozen=True, kw_only=True)
class OnboardingStep:
    """One step: whether it is done, and the page where it is done."""

    key: str
    title: str
    text: str
    done: bool
    #: The address's name, its argument if any, and the label of the link; empty where no page does it.
    page: str = ""
    argument: str = ""
    label: str = ""
    #: What to write into the settings, line by line.
    settings: tuple[str, ...] = ()


def read_onboarding(fleet: FleetPage) -> Sequence[OnboardingStep]:
    """Return the steps of the current tenant; none once an agent has been talked with, or there are many agents."""
    talked = ChatSession.objects.exists()
    if talked or fleet.agent_count > FEW_AGENTS:
        return ()
    agent = Agent.objects.order_by("id").only("tenant_id", "name").first() if fleet.agent_count else None
    kinds = {process.kind for process in fleet.processes}
    return (
        OnboardingStep(
            key="processes",
            title="Workers run",
            text="They give agents their heartbeats and answer you. The command arbor up starts all of them.",
            done={"worker", "scheduler"} <= kinds,
            page="operations",
            label="Operations",
        ),
        OnboardingStep(
            key="model",
            title="A language model answers",
            text=(
                "Keys of providers are settings of the installation, which only the process that calls models gets; no page"
                " stores them. Write one of these lines into the file .env, and restart with arbor up. Until then agents"
                " decide by fixed rules, which needs no key."
            ),
            done=not fleet.is_reflex,
            settings=("OPENAI_API_KEY=…", "ANTHROPIC_API_KEY=…", "OLLAMA_HOST=http://localhost:11434"),
        ),
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
            title=f"Talk with {agent.name}" if agent else "Talk with it",
            text="What you say becomes its memory. Then look at what it recalls, and at what it does by itself.",
            done=False,
            page="agent-chat" if agent else "",
            argument=str(agent.id) if agent else "",
            label="Talk",
        ),
    )
