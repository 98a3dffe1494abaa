"""Choose which of the agent's past bears on the work at hand (seed 001, "How Memory Influences Agent Decisions").

The situation's statement reads the latest candidates; likeness is the overlap in terms, so that no model is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from arbor.authority.approvals import ApprovalStatus
from arbor.authority.precedents import PRECEDENTS_SHOWN, Precedent, precedents_for
from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_PUBLIC, REACH_OUT_USER
from arbor.contacts.values import DeliveryStatus
from arbor.goals.satisfaction import GoalOutcome
from arbor.goals.values import GoalLayer
from arbor.heartbeat.focus import focus_text
from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, WEBHOOK, Situation
from arbor.heartbeat.views import (
    ActionTallyView,
    AttemptView,
    ExperienceView,
    PrecedentView,
    PublicationView,
    StepHandlerView,
)
from arbor.memory.text.overlap import MIN_LIKENESS, likeness
from arbor.selves.experiences import ExperienceOutcome
from arbor.workflows.values import START_WORKFLOW

#: The most entries that a prompt shows of each kind.
ATTEMPTS_SHOWN = 4
EXPERIENCES_SHOWN = 5
TALLIES_SHOWN = 6
PUBLICATIONS_SHOWN = 4
HANDLERS_SHOWN = 4
#: Intents whose texts and actions count as the work at hand.
_INTENTS_READ = 3
_FAILURES_FIRST: Mapping[str, int] = {GoalOutcome.FAILURE: 0, GoalOutcome.PARTIAL: 1, GoalOutcome.SUCCESS: 3}
#: The rank of a goal that is still open, after plans or steps of it failed.
_OPEN_RANK = 2
_MESSAGES = frozenset({USER_MESSAGE, PEER_MESSAGE, WEBHOOK})
#: The key in the detail of the percept that hands an agent a step of a workflow.
WORKFLOW_STEP = "workflow_step"
_TO_PEOPLE = frozenset({REACH_OUT_PUBLIC, REACH_OUT_USER})
_DELEGATING = frozenset({REACH_OUT_AGENT, START_WORKFLOW})
#: The audience of a result of a workflow among the publications.
WORKFLOW_AUDIENCE = "workflow"


@dataclass(frozen=True, kw_only=True, slots=True)
class PastAttempt:
    """A goal that has ended, or whose plans or steps have failed."""

    view: AttemptView
    description: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class DelegatedStep:
    """A step of a workflow that an agent was given, ended."""

    agent: str
    #: The names of workflow and step, and the task.
    about: str
    completed: bool
    tries: int
    error: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PastConduct:
    """The parts of an agent's past that a situation may show, the latest first; not in the checkpoint."""

    attempts: Sequence[PastAttempt] = ()
    #: Experiences with and without a lesson.
    experiences: Sequence[ExperienceView] = ()
    decisions: Sequence[Precedent] = ()
    publications: Sequence[PublicationView] = ()
    delegations: Sequence[DelegatedStep] = ()


def influence_of(situation: Situation, past: PastConduct) -> dict[str, Any]:
    """Return the fields of the situation, by name, that show the past that bears on its tasks and its work."""
    tasks, work = task_texts(situation), work_texts(situation)
    offered = {offer.name for offer in situation.actions}
    experiences = [experience for experience in past.experiences if experience.action in offered]
    return {
        "attempts": choose_attempts(past.attempts, tasks),
        "experiences": choose_lessons(experiences, work),
        "tallies": tally(experiences, work),
        "precedents": choose_precedents(situation, past.decisions, work),
        "publications": choose_publications(past.publications, work) if writes_for_people(situation) else [],
        "handlers": rank_handlers(past.delegations, work) if _DELEGATING & offered else [],
    }


def task_texts(situation: Situation) -> list[str]:
    """Return the texts of the tasks that have just arrived: messages, steps of workflows, active goals without a heartbeat of work."""
    percepts = (
        percept.content
        for percept in situation.percepts
        if percept.kind in _MESSAGES or WORKFLOW_STEP in percept.detail
    )
    goals = (
        f"{goal.title} {goal.description}"
        for goal in situation.active_goals
        if not goal.effort and goal.layer is not GoalLayer.ASPIRATION
    )
    return [text for text in (*percepts, *goals) if text.strip()]


def work_texts(situation: Situation) -> list[str]:
    """Return the texts of what the agent is about to do: its focus, its next steps, its new tasks."""
    steps = [intent.description for intent in situation.pending_intents[:_INTENTS_READ]]
    texts = [focus_text(situation), *steps, *task_texts(situation)]
    return [text for text in dict.fromkeys(texts) if text.strip()]


def writes_for_people(situation: Situation) -> bool:
    """Return whether the agent is about to write for people: it may publish, or a next step writes to its users."""
    offered = {offer.name for offer in situation.actions}
    planned = {intent.action for intent in situation.pending_intents[:_INTENTS_READ]}
    return REACH_OUT_PUBLIC in offered or bool(_TO_PEOPLE & offered & planned)


def choose_attempts(attempts: Iterable[PastAttempt], tasks: Sequence[str]) -> list[AttemptView]:
    """Return the attempts at tasks like these, failed ones first, then the most alike; each title once."""
    found: dict[str, tuple[int, float, AttemptView]] = {}
    for attempt in attempts:
        view = attempt.view
        fit = max(_fit(view.title, tasks), _fit(f"{view.title} {attempt.description}", tasks))
        if fit >= MIN_LIKENESS and view.title not in found:
            found[view.title] = (_FAILURES_FIRST.get(view.outcome, _OPEN_RANK), -fit, view)
    ranked = sorted(found.values(), key=lambda entry: entry[:2])
    return [view for *_, view in ranked[:ATTEMPTS_SHOWN]]


def choose_lessons(experiences: Sequence[ExperienceView], work: Sequence[str] = ()) -> list[ExperienceView]:
    """Return the lessons to show, each once: those from situations like this one first, then failures, then the latest."""
    lessons = [experience for experience in experiences if experience.lesson]
    lessons.sort(
        key=lambda experience: (
            not _is_like(experience, work),
            experience.outcome != ExperienceOutcome.FAILURE,
            -experience.heartbeat_number,
        )
    )
    unique: dict[str, ExperienceView] = {}
    for experience in lessons:
        unique.setdefault(experience.lesson, experience)
    return [*unique.values()][:EXPERIENCES_SHOWN]


def tally(experiences: Iterable[ExperienceView], work: Sequence[str]) -> list[ActionTallyView]:
    """Return what succeeded and failed in situations like this one, by action, the most often tried first."""
    alike = [experience for experience in experiences if _is_like(experience, work)]
    attempts = Counter(experience.action for experience in alike)
    successes = Counter(
        experience.action for experience in alike if experience.outcome == ExperienceOutcome.SUCCESS
    )
    tallies = [
        ActionTallyView(action=action, attempts=count, successes=successes[action])
        for action, count in attempts.items()
    ]
    tallies.sort(key=lambda entry: (-entry.attempts, entry.action))
    return tallies[:TALLIES_SHOWN]


def choose_precedents(
    situation: Situation, decisions: Sequence[Precedent], work: Sequence[str]
) -> list[PrecedentView]:
    """Return the decisions about requests like the ones that this heartbeat may make or that wait for a person.

    Requests that the situation shows themselves are left out.
    """
    shown = {request.id for request in situation.approvals}
    others = [decision for decision in decisions if str(decision.id) not in shown]
    wanted = [
        (request.action, request.about)
        for request in situation.approvals
        if request.status is ApprovalStatus.PENDING
    ]
    wanted += [(intent.action, intent.description) for intent in situation.pending_intents[:_INTENTS_READ]]
    wanted += [("", text) for text in work]
    found: dict[str, PrecedentView] = {}
    for action, about in wanted:
        for precedent in precedents_for(action=action, about=about, decided=others):
            view = PrecedentView(
                action=precedent.action,
                about=precedent.about,
                approved=precedent.approved,
                reason=precedent.reason,
                at=precedent.decided_at,
            )
            found.setdefault(str(precedent.id), view)
    return sorted(found.values(), key=lambda view: view.approved)[:PRECEDENTS_SHOWN]


def choose_publications(
    publications: Sequence[PublicationView], work: Sequence[str]
) -> list[PublicationView]:
    """Return what became of earlier texts: those about the same matter first, then the latest.

    Results of workflows are returned only if they are about the same matter.
    """
    fits = [(_fit(publication.content, work) >= MIN_LIKENESS, publication) for publication in publications]
    chosen = [entry for entry in fits if entry[0] or entry[1].audience != WORKFLOW_AUDIENCE]
    chosen.sort(key=lambda entry: not entry[0])
    return [publication for _, publication in chosen[:PUBLICATIONS_SHOWN]]


def rank_handlers(steps: Iterable[DelegatedStep], work: Sequence[str]) -> list[StepHandlerView]:
    """Return the agents that were given steps like this work, those that completed the largest share first."""
    by_agent: dict[str, list[DelegatedStep]] = {}
    for step in steps:
        if _fit(step.about, work) >= MIN_LIKENESS:
            by_agent.setdefault(step.agent, []).append(step)
    handlers = [_view_handler(name, given) for name, given in by_agent.items()]
    handlers.sort(key=lambda view: (-view.completed / view.steps, -view.steps, view.tries, view.name))
    return handlers[:HANDLERS_SHOWN]


def _view_handler(name: str, given: Sequence[DelegatedStep]) -> StepHandlerView:
    return StepHandlerView(
        name=name,
        steps=len(given),
        completed=sum(step.completed for step in given),
        tries=round(sum(max(step.tries, 1) for step in given) / len(given), 1),
        error=next((step.error for step in given if not step.completed and step.error), ""),
    )


def _fit(text: str, texts: Iterable[str]) -> float:
    return max((likeness(text, other) for other in texts), default=0.0)


def _is_like(experience: ExperienceView, work: Sequence[str]) -> bool:
    return _fit(experience.about, work) >= MIN_LIKENESS


def read_past(columns: Mapping[str, Any]) -> PastConduct:
    """Return the agent's past from the columns of the situation's statement by name."""
    return PastConduct(
        attempts=[
            PastAttempt(
                view=AttemptView(
                    title=title, outcome=outcome, at=at, reasons=[*filter(None, [reason, *faults])]
                ),
                description=description,
            )
            for title, description, outcome, reason, at, faults in columns["attempts"]
        ],
        experiences=[ExperienceView.model_validate(row) for row in columns["experiences"]],
        decisions=[
            Precedent(
                id=id_,
                action=action,
                about=about,
                approved=approved,
                reason=reason,
                decided_by="",
                decided_at=datetime.fromisoformat(at),
            )
            for id_, action, about, approved, reason, at in columns["decisions"]
        ],
        publications=[
            *(_publication(row) for row in columns["publications"]),
            *(
                PublicationView(
                    audience=WORKFLOW_AUDIENCE, content=f"{workflow}, {step}: {task}", at=at, outcome=output
                )
                for workflow, step, task, output, at in columns["step_results"]
            ),
        ],
        delegations=[
            DelegatedStep(agent=agent, about=about, completed=completed, tries=tries, error=error)
            for agent, about, completed, tries, error in columns["delegations"]
        ],
    )


def _publication(row: Sequence[Any]) -> PublicationView:
    audience, content, at, status, error, is_read, answers, last_answer = row
    if answers:
        times = "once" if answers == 1 else f"{answers} times"
        outcome = f"answered {times}, at last: {last_answer}"
    elif status in (DeliveryStatus.FAILED, DeliveryStatus.CANCELLED):
        outcome = f"not delivered ({status}){f': {error}' if error else ''}"
    elif is_read:
        outcome = "read, not answered"
    else:
        outcome = "delivered, no reaction" if status == DeliveryStatus.SENT else "not delivered yet"
    return PublicationView(audience=audience, content=content, at=at, outcome=outcome)
