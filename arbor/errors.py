"""All errors that Arbor raises, in one tree.

ArborError
├── Invalid                   input that is wrong; the message says what would be right
│   ├── ContentInvalid        a memory's text is empty, too long or contains NUL
│   ├── DefinitionInvalid     a definition breaks a rule; lists every fault
│   │   ├── TemplateInvalid   a template file breaks a rule
│   │   ├── SkillInvalid      a SKILL.md file breaks a rule
│   │   └── PipelineInvalid   a DOT graph breaks a rule
│   ├── CapabilityInvalid     an `arbor://` URI, or a constraint of a grant, breaks a rule
│   ├── CheckpointInvalid     a checkpoint does not fit its pipeline
│   ├── ConversationInvalid   a conversation file cannot be read at all
│   ├── SeedInvalid           a seed is damaged, too large, newer, or of another installation
│   ├── DocumentUnreadable    a document's file is damaged, encrypted, too large or without text
│   ├── TransitionIllegal     a status may not follow another
│   │   └── AgentNotActive    a heartbeat of a paused, stopped or new agent, or of a suspended tenant, was requested
│   │       └── AgentDormant  a heartbeat of a dormant agent was requested
│   ├── LimitReached          a bounded collection is full
│   │   ├── BudgetExhausted   no tick is left, or the day's budget is used up
│   │   ├── GoalStackFull     no further goal fits
│   │   └── WorkingMemoryOverflow  a working memory is above 64 KB
│   ├── ContextTooLarge       a prompt leaves no room for a reply in its model's window
│   └── ConfigurationInvalid  a setting is missing or wrong
├── NotFound                  nothing with that id or name, for this tenant
├── AlreadyExists             the name is in use, or the same thing exists already
├── PreconditionFailed        the row has changed since it was read
├── RequestUnderway           the same request is being carried out
├── RateLimited               too many requests; the caller waits
├── TenancyError              a person decides; never retried
│   ├── TenantRequired        a query without a tenant
│   ├── TenantMismatch        two tenants in one unit of work
│   ├── PermissionDenied      the member's role does not allow it
│   ├── TokenRefused          an API token is missing, unknown, expired or revoked
│   ├── CapabilityDenied      a delegation exceeds the grant above it, or no grant authorizes an act
│   └── IdentityRefused       an agent's keys or endorsement are not valid, or its identity is suspended or revoked
├── SignatureRefused          a delivery at a hook is not signed as it must be
├── SealBroken                a sealed secret does not open
├── MessageRefused            a message of another agent is not from its sender, not for its receiver, or damaged
├── ReplyInvalid              the model is asked again
├── ModelError                the heartbeat ends as failed, or is retried
│   ├── ModelUnavailable      network, 429, 5xx, or the breaker is open
│   ├── ModelTimeout          the total deadline passed
│   ├── ModelRefused          the model declined
│   └── ModelRejected         the provider says the request or key is wrong
├── EmbeddingFailed           the embedder gave no usable vectors
├── WebFailed                 the web gave no usable page or answer; the model receives the error
│   └── WebRefused            the page may not be read here
├── ToolFailed                a tool of an MCP server gave no usable result; the agent reads the reason
│   ├── ToolSuspended         the tool, or the agent's right to it, has changed; nothing was called
│   └── ToolInterrupted       the worker died during the call, whose effect is not known
├── DeliveryFailed            a receiver did not accept a message: it is retried, or a person decides
├── StaleLease                another worker has taken the heartbeat over
├── ApprovalLost              an approval was withdrawn or expired while its action ran; nothing was written
└── ServerError               an embedded server or a process of the installation failed
    ├── AlreadyRunning        another supervisor runs from this data folder
    └── ReaderKilled          the process that reads files of documents was killed from outside
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from arbor.models.usage import Usage


class ArborError(Exception):
    """An error that Arbor raises."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])


# --- Input -------------------------------------------------------------------------------------------


class Invalid(ArborError):
    """The input is not valid."""


class ContentInvalid(Invalid):
    """The content of a memory is empty, too long or contains a NUL character."""


class DefinitionInvalid(Invalid):
    """The definition breaks a rule."""

    def __init__(self, message: str | None = None, *, faults: Sequence[str] = ()) -> None:
        super().__init__(message or "; ".join(faults) or None)
        #: All faults, each with its place.
        self.faults = tuple(faults)


class TemplateInvalid(DefinitionInvalid):
    """The template file breaks a rule."""


class SkillInvalid(DefinitionInvalid):
    """The SKILL.md file breaks a rule."""


class PipelineInvalid(DefinitionInvalid):
    """The pipeline graph breaks a rule."""


class CapabilityInvalid(Invalid):
    """The capability's URI or a constraint of its grant breaks a rule."""


class CheckpointInvalid(Invalid):
    """The checkpoint does not fit the pipeline."""


class ConversationInvalid(Invalid):
    """The conversation file cannot be read."""


class SeedInvalid(Invalid):
    """The seed cannot be read."""


class DocumentUnreadable(Invalid):
    """The document's file cannot be read."""


class TransitionIllegal(Invalid):
    """That status may not follow this one."""


class AgentNotActive(TransitionIllegal):
    """The agent is not active, so it has no heartbeats."""


class AgentDormant(AgentNotActive):
    """The agent is dormant, so it has no heartbeats; wake it first."""


class LimitReached(Invalid):
    """The limit is reached."""


class BudgetExhausted(LimitReached):
    """No tick is left, or the day's budget is used up."""


class GoalStackFull(LimitReached):
    """No further goal fits."""


class WorkingMemoryOverflow(LimitReached):
    """The working memory is too large."""


class ContextTooLarge(Invalid):
    """The prompt leaves no room for a reply in its model's window."""


class ConfigurationInvalid(Invalid):
    """A setting is missing or wrong."""


class NotFound(ArborError):
    """There is nothing with that name or id."""


class AlreadyExists(ArborError):
    """The name is in use."""


class PreconditionFailed(ArborError):
    """The row has changed since it was read."""


class RequestUnderway(ArborError):
    """A request with the same idempotency key is being carried out; wait for its response."""


class RateLimited(ArborError):
    """There were too many requests."""

    def __init__(self, message: str | None = None, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        #: The wait until the next request is allowed, in seconds.
        self.retry_after_s = retry_after_s


# --- Tenancy -----------------------------------------------------------------------------------------


class TenancyError(ArborError):
    """A rule that keeps tenants apart was about to be broken."""


class TenantRequired(TenancyError):
    """A query on tenant data was made without a tenant: open `tenant_transaction(tenant_id)` around it."""


class TenantMismatch(TenancyError):
    """One unit of work named two tenants."""


class PermissionDenied(TenancyError):
    """The member's role in this tenant does not allow that."""


class TokenRefused(TenancyError):
    """The API token is missing, unknown, expired or revoked."""


class CapabilityDenied(TenancyError):
    """No grant authorizes this."""


class IdentityRefused(TenancyError):
    """The agent's identity is not valid: it may not act."""


class SignatureRefused(ArborError):
    """The delivery is for no hook, or its signature is wrong."""


# --- Identity ----------------------------------------------------------------------------------------


class SealBroken(ArborError):
    """The sealed secret does not open: wrong master key, wrong row, or damaged data."""


class MessageRefused(ArborError):
    """The message of another agent is not from its sender, not for its receiver, or damaged."""


# --- The heartbeat's loop, by who handles the error --------------------------------------------------


class ReplyInvalid(ArborError):
    """The model's reply contains no usable decision; the model is asked again."""


class ModelError(ArborError):
    """The model gave no reply."""

    #: The calls to the provider before this error; 0: the provider was not called.
    attempts: int = 1


class ModelUnavailable(ModelError):
    """The model's provider cannot be reached or is overloaded."""

    def __init__(
        self, message: str | None = None, *, retry_after_s: float | None = None, provider_fault: bool = True
    ) -> None:
        super().__init__(message)
        #: The wait that the provider asked for, in seconds, or None.
        self.retry_after_s = retry_after_s
        #: False where the provider works (a rate limit, Arbor's own full pool): its breaker does not count the error.
        self.provider_fault = provider_fault


class ModelTimeout(ModelError):
    """The model did not answer before the deadline."""


class ModelRefused(ModelError):
    """The model declined to answer."""

    def __init__(
        self, message: str | None = None, *, usage: Usage | None = None, cost_usd: Decimal | None = None
    ) -> None:
        super().__init__(message)
        #: The tokens of the refused call, None when the provider did not report them, and their cost, None for an unknown price.
        self.usage = usage
        self.cost_usd = cost_usd


class ModelRejected(ModelError):
    """The provider rejected the request: check the key, the model's name and the settings."""


class EmbeddingFailed(ArborError):
    """The embedder gave no usable vectors."""


class DeliveryFailed(ArborError):
    """The receiver did not accept the message."""

    def __init__(self, message: str | None = None, *, final: bool = False) -> None:
        super().__init__(message)
        #: Whether a retry does not help.
        self.final = final


class WebFailed(ArborError):
    """The web gave no usable page or answer."""


class WebRefused(WebFailed):
    """The page may not be read here."""


class ToolFailed(ArborError):
    """The tool gave no usable result."""


class ToolSuspended(ToolFailed):
    """The tool differs from the one that an operator allowed, or the agent may no longer call it; it was not called."""


class ToolInterrupted(ToolFailed):
    """The worker died while the tool ran; whether it took effect is not known, so the call is not repeated."""


class StaleLease(ArborError):
    """Another worker has taken this heartbeat over; nothing was written."""


class ApprovalLost(ArborError):
    """An approval was withdrawn or expired while its action ran; nothing was written."""


# --- Processes ---------------------------------------------------------------------------------------


class ServerError(ArborError):
    """A server or process of the installation failed."""


class AlreadyRunning(ServerError):
    """Another supervisor runs from this data folder."""


class ReaderKilled(ServerError):
    """The process that reads files of documents was killed from outside; another attempt may succeed."""
