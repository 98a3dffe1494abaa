"""Documents, searches, seeds and skills."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from arbor.errors import ConfigurationInvalid
from arbor.knowledge.chunking import PassageSize
from arbor.knowledge.merging import RECENCY_HALF_LIFE, parse_merge_weights, parse_min_similarity
from config.environment import env, whole_number

# --- Documents ------------------------------------------------------------------------------------------

#: The largest file of a document, in megabytes.
ARBOR_DOCUMENT_MB = whole_number("ARBOR_DOCUMENT_MB", default=20, least=1, most=200)
# The console's server has received a request whole before Django reads it, so its files stay in memory.
FILE_UPLOAD_MAX_MEMORY_SIZE = ARBOR_DOCUMENT_MB * 2**20
#: The most pages of a PDF, and characters of a text.
ARBOR_DOCUMENT_PAGES = env.int("ARBOR_DOCUMENT_PAGES", default=2_000)
ARBOR_DOCUMENT_CHARACTERS = env.int("ARBOR_DOCUMENT_CHARACTERS", default=5_000_000)
for _name, _most in (
    ("ARBOR_DOCUMENT_PAGES", ARBOR_DOCUMENT_PAGES),
    ("ARBOR_DOCUMENT_CHARACTERS", ARBOR_DOCUMENT_CHARACTERS),
):
    if _most < 1:
        raise ConfigurationInvalid(f"{_name} must be at least 1, got {_most}")
#: The most seconds and megabytes of the child process that reads one file.
ARBOR_DOCUMENT_READ_S = env.float("ARBOR_DOCUMENT_READ_S", default=20.0)
if not 0 < ARBOR_DOCUMENT_READ_S <= 40:
    raise ConfigurationInvalid(
        f"ARBOR_DOCUMENT_READ_S must be above 0 and at most 40 seconds, got {ARBOR_DOCUMENT_READ_S:g}: a task of maintenance has a minute"
    )
ARBOR_DOCUMENT_READ_MB = env.int("ARBOR_DOCUMENT_READ_MB", default=1_024)
if ARBOR_DOCUMENT_READ_MB < 128:
    raise ConfigurationInvalid(f"ARBOR_DOCUMENT_READ_MB must be at least 128, got {ARBOR_DOCUMENT_READ_MB}")
#: Estimated tokens of a passage, 50 to 2,000, and how many of them the next one repeats, at most half.
ARBOR_PASSAGE_TOKENS = env.int("ARBOR_PASSAGE_TOKENS", default=300)
ARBOR_PASSAGE_OVERLAP = env.int("ARBOR_PASSAGE_OVERLAP", default=50)
# Raises ConfigurationInvalid for sizes that no document can be split into.
PassageSize(target=ARBOR_PASSAGE_TOKENS, overlap=ARBOR_PASSAGE_OVERLAP)

# --- Search over all sources of an agent ----------------------------------------------------------------

#: The least cosine of a result, -1 to 1; empty: by the embedder (`arbor.knowledge.merging`), 0.7 for most.
ARBOR_SEARCH_MIN_SIMILARITY = parse_min_similarity(env.str("ARBOR_SEARCH_MIN_SIMILARITY", default=""))
#: Weights as `NAME=NUMBER`, separated by commas, instead of those in `arbor.knowledge.merging`.
ARBOR_SEARCH_WEIGHTS = parse_merge_weights(env.str("ARBOR_SEARCH_WEIGHTS", default=""))
#: The age at which the recency of a result is a half.
ARBOR_SEARCH_HALF_LIFE = timedelta(
    days=env.float("ARBOR_SEARCH_HALF_LIFE_DAYS", default=RECENCY_HALF_LIFE / timedelta(days=1))
)
if not timedelta(0) < ARBOR_SEARCH_HALF_LIFE:
    raise ConfigurationInvalid(
        f"ARBOR_SEARCH_HALF_LIFE_DAYS must be above 0, got {ARBOR_SEARCH_HALF_LIFE / timedelta(days=1):g}"
    )
#: The milliseconds that each source may take; after that the results of the other sources are returned without it.
ARBOR_SEARCH_SOURCE_MS = whole_number("ARBOR_SEARCH_SOURCE_MS", default=500, least=1, most=60_000)
#: The most passages of a tenant that is searched exactly; a larger tenant is searched by HNSW (decision 0036).
ARBOR_SEARCH_EXACT_PASSAGES = whole_number(
    "ARBOR_SEARCH_EXACT_PASSAGES", default=50_000, least=0, most=2**31 - 2
)

# --- Seeds ----------------------------------------------------------------------------------------------

#: The largest seed that is read, in megabytes; unpacked, it may have four times as many.
ARBOR_SEED_MAX_MB = whole_number("ARBOR_SEED_MAX_MB", default=512, least=1, most=100_000)

# --- Skills ---------------------------------------------------------------------------------------------

#: The folder of the installation's own skills, `NAME/SKILL.md` each, beside those that come with Arbor; empty: none. Files are
#: loaded at the start, and within ARBOR_SKILLS_PERIOD_S of a change.
ARBOR_SKILLS_FOLDER = env.str("ARBOR_SKILLS_FOLDER", default="")
if ARBOR_SKILLS_FOLDER and not Path(ARBOR_SKILLS_FOLDER).is_dir():
    raise ConfigurationInvalid(
        f"ARBOR_SKILLS_FOLDER must be a folder with NAME/SKILL.md files, got {ARBOR_SKILLS_FOLDER!r}, which is no folder"
    )
ARBOR_SKILLS_PERIOD = timedelta(seconds=env.float("ARBOR_SKILLS_PERIOD_S", default=15.0))
if not timedelta(seconds=1) <= ARBOR_SKILLS_PERIOD <= timedelta(days=1):
    raise ConfigurationInvalid(
        f"ARBOR_SKILLS_PERIOD_S must be 1 to 86400, got {ARBOR_SKILLS_PERIOD.total_seconds():g}"
    )
