"""Heartbeats, conversations, messages and tool servers."""

from __future__ import annotations

from datetime import timedelta

from arbor.contacts.chat import SIGNIFICANT
from arbor.contacts.cooldown import COOLDOWN, PUBLIC_PER_DAY, ContactLimits
from arbor.errors import ConfigurationInvalid
from config.environment import env, number, seconds, secret, whole_number
from config.mail import mailers

# --- Heartbeats -----------------------------------------------------------------------------------------

#: The interval between heartbeats of a new agent, unless the agent or its template has another (`arbor.agents.template` has the range).
ARBOR_HEARTBEAT_INTERVAL = timedelta(
    seconds=whole_number("ARBOR_HEARTBEAT_INTERVAL_S", default=3600, least=1, most=30 * 86_400)
)
#: The time within which a claimed heartbeat must start, and the time within which a started one must reach its next step.
ARBOR_QUEUE_LEASE = seconds("ARBOR_QUEUE_LEASE_S", default=60, least=0.1, most=86_400)
ARBOR_RUN_LEASE = seconds("ARBOR_RUN_LEASE_S", default=30, least=0.1, most=86_400)
#: The lost leases in a row after which an agent's heartbeat fails.
ARBOR_MAX_ATTEMPTS = whole_number("ARBOR_MAX_ATTEMPTS", default=5, least=1, most=1_000)
#: The most heartbeats claimed by one statement, and the most running heartbeats of the installation.
ARBOR_CLAIM_BATCH = whole_number("ARBOR_CLAIM_BATCH", default=500, least=1, most=100_000)
ARBOR_MAX_IN_FLIGHT = whole_number("ARBOR_MAX_IN_FLIGHT", default=5000, least=1, most=1_000_000)
#: The most heartbeats of one tenant in one claim while other tenants wait.
ARBOR_TENANT_CLAIM_LIMIT = whole_number("ARBOR_TENANT_CLAIM_LIMIT", default=100, least=1, most=100_000)
#: An idle agent reflects once in ARBOR_REFLECT_EVERY heartbeats, and no earlier than ARBOR_REFLECT_PAUSE after its last thought,
#: because heartbeats that follow each other by seconds bring nothing new. Its other heartbeats call no model. At most 24, as
#: a heartbeat looks back to no more (`arbor.heartbeat.failure_modes.HEARTBEATS_WATCHED`), and an earlier reflection counts as none.
ARBOR_REFLECT_EVERY = whole_number("ARBOR_REFLECT_EVERY", default=4, least=1, most=24)
ARBOR_REFLECT_PAUSE = timedelta(seconds=env.float("ARBOR_REFLECT_PAUSE_S", default=3600))
#: The period of the search for due agents.
ARBOR_DISPATCH_PERIOD = seconds("ARBOR_DISPATCH_PERIOD_S", default=0.25, least=0.05, most=3600)

# --- Conversations --------------------------------------------------------------------------------------

#: The time after the last turn at which a conversation ends; until then the agent's schedule pauses.
ARBOR_CHAT_IDLE = timedelta(seconds=env.float("ARBOR_CHAT_IDLE_S", default=300))
if not timedelta(0) < ARBOR_CHAT_IDLE:
    raise ConfigurationInvalid(f"ARBOR_CHAT_IDLE_S must be above 0, got {ARBOR_CHAT_IDLE.total_seconds():g}")
#: The significance, 0 to 1, from which a conversation triggers a heartbeat when it ends; above 1: none does.
ARBOR_CHAT_SIGNIFICANT = env.float("ARBOR_CHAT_SIGNIFICANT", default=SIGNIFICANT)

# --- Reaching out ---------------------------------------------------------------------------------------

#: The cool-down of messages to users, and the most public messages of an agent in any 24 hours.
ARBOR_CONTACT_LIMITS = ContactLimits(
    cooldown=timedelta(hours=env.float("ARBOR_REACH_OUT_COOLDOWN_H", default=COOLDOWN / timedelta(hours=1))),
    public_per_day=env.int("ARBOR_REACH_OUT_PUBLIC_PER_DAY", default=PUBLIC_PER_DAY),
)
#: The mail server; empty: mails fail with an error. `ARBOR_EMAIL_SECURITY` is starttls, tls or none.
ARBOR_EMAIL_HOST = env.str("ARBOR_EMAIL_HOST", default="")
ARBOR_EMAIL_FROM = env.str("ARBOR_EMAIL_FROM", default="")
MAILERS = mailers(
    host=ARBOR_EMAIL_HOST,
    port=whole_number("ARBOR_EMAIL_PORT", default=0, least=0, most=65_535),
    user=env.str("ARBOR_EMAIL_USER", default=""),
    password=secret("ARBOR_EMAIL_PASSWORD"),
    security=env.str("ARBOR_EMAIL_SECURITY", default="starttls"),
    timeout_s=env.float("ARBOR_EMAIL_TIMEOUT_S", default=15.0),
    sender=ARBOR_EMAIL_FROM,
)
#: Whether webhooks may use http, and private addresses such as a receiver's on this machine.
ARBOR_WEBHOOK_ALLOW_HTTP = env.bool("ARBOR_WEBHOOK_ALLOW_HTTP", default=False)
ARBOR_WEBHOOK_ALLOW_PRIVATE = env.bool("ARBOR_WEBHOOK_ALLOW_PRIVATE", default=False)
#: The period of the search for due messages, and for messages whose worker died.
ARBOR_OUTBOX_PERIOD = seconds("ARBOR_OUTBOX_PERIOD_S", default=5.0, least=0.05, most=3600)

# --- Tool servers ---------------------------------------------------------------------------------------

#: Whether tool servers may use http, and private addresses; the most seconds of a call or listing, and the most bytes of an answer.
ARBOR_MCP_ALLOW_HTTP = env.bool("ARBOR_MCP_ALLOW_HTTP", default=False)
ARBOR_MCP_ALLOW_PRIVATE = env.bool("ARBOR_MCP_ALLOW_PRIVATE", default=False)
ARBOR_MCP_DEADLINE_S = number("ARBOR_MCP_DEADLINE_S", default=30.0, least=0.1, most=86_400, unit=" seconds")
ARBOR_MCP_RESULT_BYTES = whole_number("ARBOR_MCP_RESULT_BYTES", default=1_000_000, least=1, most=2**30)
