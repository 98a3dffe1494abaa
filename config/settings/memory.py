"""Memories: stored, recalled and maintained."""

from __future__ import annotations

from datetime import timedelta

from arbor.errors import ConfigurationInvalid
from arbor.memory.forgetting import ARCHIVE_BELOW, CLEANUP_BELOW, GRACE, QUOTA, ForgettingPolicy, parse_quotas
from arbor.memory.maintenance.health import parse_limits
from arbor.memory.recall.weights import parse_weights
from config.environment import env, whole_number

# --- Storing memories -----------------------------------------------------------------------------------

#: A YAML or JSON file of further words for the appraisal, besides `arbor/memory/importance_words.yaml`.
ARBOR_IMPORTANCE_WORDS = env.str("ARBOR_IMPORTANCE_WORDS", default="")
#: Days until a memory of each kind is archived, counted from storage; 0: never.
ARBOR_TTL_DAYS = {
    "routine": env.float("ARBOR_TTL_ROUTINE_DAYS", default=7.0),
    "task": env.float("ARBOR_TTL_TASK_DAYS", default=30.0),
    "decision": env.float("ARBOR_TTL_DECISION_DAYS", default=90.0),
    "error": env.float("ARBOR_TTL_ERROR_DAYS", default=14.0),
}
#: The cosine from which a new memory without a session may be a duplicate; above 1: only equal texts are.
ARBOR_DUPLICATE_SIMILARITY = env.float("ARBOR_DUPLICATE_SIMILARITY", default=0.95)
#: The longest gap within an episode.
ARBOR_EPISODE_GAP = timedelta(minutes=env.float("ARBOR_EPISODE_GAP_MINUTES", default=30.0))

# --- Recalling memories ---------------------------------------------------------------------------------

#: Weights as `NAME=WEIGHT`, separated by commas, instead of those in `arbor.memory.recall.weights`; `python -m bench locomo --tune`
#: shows the effect of each.
ARBOR_RECALL_WEIGHTS = parse_weights(env.str("ARBOR_RECALL_WEIGHTS", default=""))
#: The most memory of a process for its mind cache, in MiB; 0: every recall scans the database.
ARBOR_MIND_CACHE_MB = env.float("ARBOR_MIND_CACHE_MB", default=128)
if not ARBOR_MIND_CACHE_MB >= 0:
    raise ConfigurationInvalid(f"ARBOR_MIND_CACHE_MB must be 0 or more, got {ARBOR_MIND_CACHE_MB:g}")

# --- Maintenance of memories ----------------------------------------------------------------------------

#: The share of its time that a job run works, above 0 and at most 1; for the rest it pauses.
ARBOR_MAINTENANCE_SHARE = env.float("ARBOR_MAINTENANCE_SHARE", default=0.7)
if not 0 < ARBOR_MAINTENANCE_SHARE <= 1:
    raise ConfigurationInvalid(
        f"ARBOR_MAINTENANCE_SHARE must be above 0 and at most 1, got {ARBOR_MAINTENANCE_SHARE:g}"
    )
#: The `provider/model` that summarizes episodes, extracts concepts and appraises memories; empty: rules do, at no cost.
ARBOR_MAINTENANCE_MODEL = env.str("ARBOR_MAINTENANCE_MODEL", default="")
#: The least cosine of a memory and its cluster, in deviations above the mean cosine of the agent's memories, 0.5 to 10: a
#: lower value makes wider clusters. And the period in which an agent's memories are reclustered, if they changed.
ARBOR_CLUSTER_DEVIATIONS = env.float("ARBOR_CLUSTER_DEVIATIONS", default=3.5)
ARBOR_CLUSTER_PERIOD = timedelta(
    seconds=whole_number("ARBOR_CLUSTER_PERIOD_S", default=1800, least=0, most=30 * 86_400)
)
#: Whether the maintenance model also appraises each new memory; its importance and that of the rules are averaged.
ARBOR_APPRAISE_MEMORIES = env.bool("ARBOR_APPRAISE_MEMORIES", default=False)
#: The most pending maintenance calls in the installation; calls of heartbeats wait in the same queue.
ARBOR_MAX_MAINTENANCE_CALLS = env.int("ARBOR_MAX_MAINTENANCE_CALLS", default=200)
#: The time for which the prompt of a completed maintenance call is stored for people; then it is deleted.
ARBOR_MAINTENANCE_PROMPTS_KEPT = timedelta(days=env.float("ARBOR_MAINTENANCE_PROMPTS_DAYS", default=7.0))
if not timedelta(0) <= ARBOR_MAINTENANCE_PROMPTS_KEPT:
    raise ConfigurationInvalid(
        f"ARBOR_MAINTENANCE_PROMPTS_DAYS must be 0 or more, got {ARBOR_MAINTENANCE_PROMPTS_KEPT / timedelta(days=1):g}"
    )
#: The cosine above which two memories are neighbors (seed 004). Embedders differ in the cosines of similar texts.
ARBOR_NEIGHBOR_SIMILARITY = env.float("ARBOR_NEIGHBOR_SIMILARITY", default=0.75)
#: The half-life of activation.
ARBOR_ACTIVATION_HALF_LIFE = timedelta(seconds=env.float("ARBOR_ACTIVATION_HALF_LIFE_S", default=3600))
if not timedelta(0) < ARBOR_ACTIVATION_HALF_LIFE:
    raise ConfigurationInvalid(
        f"ARBOR_ACTIVATION_HALF_LIFE_S must be above 0, got {ARBOR_ACTIVATION_HALF_LIFE.total_seconds():g}"
    )
#: The maximum number of active episodic memories of one agent; above it, the least important are archived.
ARBOR_MEMORY_QUOTA = env.int("ARBOR_MEMORY_QUOTA", default=QUOTA)
#: The same for facts, procedures and strategies: `NAME=NUMBER`, separated by commas, instead of those in `arbor.memory.forgetting`.
ARBOR_KNOWLEDGE_QUOTAS = parse_quotas(env.str("ARBOR_KNOWLEDGE_QUOTAS", default=""))
#: A memory is archived when its importance has decayed below ARBOR_ARCHIVE_BELOW. An episodic memory whose importance never
#: exceeded ARBOR_CLEANUP_BELOW is archived when it has not been used for the grace period.
ARBOR_ARCHIVE_BELOW = env.float("ARBOR_ARCHIVE_BELOW", default=ARCHIVE_BELOW)
ARBOR_CLEANUP_BELOW = env.float("ARBOR_CLEANUP_BELOW", default=CLEANUP_BELOW)
ARBOR_FORGETTING_GRACE = timedelta(
    hours=env.float("ARBOR_FORGETTING_GRACE_H", default=GRACE / timedelta(hours=1))
)
# Checked here, so that a wrong value is refused at the start and not in the middle of a job.
ForgettingPolicy(
    archive_below=ARBOR_ARCHIVE_BELOW,
    cleanup_below=ARBOR_CLEANUP_BELOW,
    grace=ARBOR_FORGETTING_GRACE,
    quota=ARBOR_MEMORY_QUOTA,
)
#: The limits of maintenance: `NAME=WARN:CRITICAL`, separated by commas, instead of those in `arbor.memory.maintenance.health`.
ARBOR_HEALTH_LIMITS = parse_limits(env.str("ARBOR_HEALTH_LIMITS", default=""))
