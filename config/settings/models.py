"""Language models, embedders and the web that agents read."""

from __future__ import annotations

from arbor.adapters.credentials import SERVER_HANDLE, call_deadline_s
from arbor.authority.modes import parse_model_limits
from arbor.errors import ConfigurationInvalid
from arbor.heartbeat.replies.round_trips import MAX_ROUND_TRIPS
from arbor.heartbeat.tiers import parse_tier_models
from arbor.models.slots import parse_provider_calls
from arbor.models.token_counts import parse_tokenizers
from arbor.web.addresses import AllowList
from config.environment import env, number, secret, whole_number

OPENAI_API_KEY = secret("OPENAI_API_KEY")
OPENAI_BASE_URL = env.str("OPENAI_BASE_URL", default="") or env.str("OPENAI_API_BASE", default="")
#: The organization and the project that OpenAI bills for calls with a key of several.
OPENAI_ORG_ID = env.str("OPENAI_ORG_ID", default="")
OPENAI_PROJECT_ID = env.str("OPENAI_PROJECT_ID", default="")
OPENROUTER_API_KEY = secret("OPENROUTER_API_KEY")
ANTHROPIC_API_KEY = secret("ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = env.str("ANTHROPIC_BASE_URL", default="")
GEMINI_API_KEY = secret("GEMINI_API_KEY")
OLLAMA_HOST = env.str("OLLAMA_HOST", default="")
#: Whether tenants may enter private addresses, and plain http, for their providers of models.
ARBOR_MODEL_ALLOW_PRIVATE = env.bool("ARBOR_MODEL_ALLOW_PRIVATE", default=False)
#: `provider/model`; empty: chosen from the keys that are set, else the reflex policy.
ARBOR_DEFAULT_MODEL = env.str("ARBOR_DEFAULT_MODEL", default="")
#: Calls that a process sends to a provider at once, `ollama=2,openai=64`; further ones wait. The deadline runs from sending.
ARBOR_PROVIDER_CALLS = parse_provider_calls(env.str("ARBOR_PROVIDER_CALLS", default=""))
#: The most tokens of a reply.
ARBOR_MODEL_MAX_TOKENS = whole_number("ARBOR_MODEL_MAX_TOKENS", default=4096, least=1, most=10_000_000)
#: The context of an unknown model in tokens, prompt and reply together (`arbor.models.windows` has the known ones).
ARBOR_MODEL_CONTEXT = env.int("ARBOR_MODEL_CONTEXT", default=16_384)
if ARBOR_MODEL_CONTEXT < 2_048:
    raise ConfigurationInvalid(f"ARBOR_MODEL_CONTEXT must be at least 2048 tokens, got {ARBOR_MODEL_CONTEXT}")
#: Files `tokenizer.json` by provider or `provider/model`, `ollama=/models/llama3.json`: their models' tokens are counted, not estimated.
ARBOR_TOKENIZERS = parse_tokenizers(env.str("ARBOR_TOKENIZERS", default=""))
#: Models by tier, for agents without models of their own: `strategic=a/x|b/y,standard=…,reflex=…`. The first available model
#: is asked; a tier that is not named uses ARBOR_DEFAULT_MODEL.
ARBOR_TIER_MODELS = parse_tier_models(env.str("ARBOR_TIER_MODELS", default=""))
#: Trust presets that no agent exceeds with a model, by provider or `provider/model`: `ollama=cautious,openai/gpt-5-nano=balanced`.
ARBOR_MODEL_TRUST = parse_model_limits(env.str("ARBOR_MODEL_TRUST", default=""))
#: Seconds for a whole call, from sending: 90, or 300 where a model is on a slow server of the installation's own.
ARBOR_MODEL_DEADLINE_S = number(
    "ARBOR_MODEL_DEADLINE_S",
    least=0.1,
    most=86_400,
    unit=" seconds",
    default=call_deadline_s(
        [
            ARBOR_DEFAULT_MODEL or SERVER_HANDLE,
            *(handle for handles in ARBOR_TIER_MODELS.values() for handle in handles),
        ],
        openai_base_url=OPENAI_BASE_URL,
        ollama_host=OLLAMA_HOST,
    ),
)
#: The most further round trips of a heartbeat, with the results of its actions: 0 to 9.
ARBOR_FOLLOW_UPS = whole_number("ARBOR_FOLLOW_UPS", default=9, least=0, most=MAX_ROUND_TRIPS - 1)
#: The domains that agents may read on the web, each with its subdomains, or `*`; empty: no web. And the address of a
#: SearXNG-compatible search server; empty: no inquiries.
ARBOR_WEB_ALLOW = env.list("ARBOR_WEB_ALLOW", default=[])
# A wrong domain is refused here, not at the first inquiry.
AllowList.of(ARBOR_WEB_ALLOW)
ARBOR_SEARCH_URL = env.str("ARBOR_SEARCH_URL", default="")
#: The largest page that is read, in bytes, and the seconds for all searches and pages of an inquiry, at most ARBOR_MODEL_DEADLINE_S.
ARBOR_WEB_PAGE_BYTES = whole_number("ARBOR_WEB_PAGE_BYTES", default=2_000_000, least=1, most=2**30)
ARBOR_WEB_DEADLINE_S = number("ARBOR_WEB_DEADLINE_S", default=45.0, least=0.1, most=86_400, unit=" seconds")
#: The embedding model of new minds: `wordllama`, `openai/<model>` or `tei/<model>`. `arbor memory reembed` moves existing
#: minds to it.
ARBOR_EMBEDDING_MODEL = env.str("ARBOR_EMBEDDING_MODEL", default="wordllama")
ARBOR_EMBEDDING_DIMENSION = env.int("ARBOR_EMBEDDING_DIMENSION", default=256)
ARBOR_EMBEDDING_URL = env.str("ARBOR_EMBEDDING_URL", default="")
#: `model=address,…` of other embedding models that agents use, or are to be moved to.
ARBOR_EMBEDDING_URLS = env.dict("ARBOR_EMBEDDING_URLS", default={})
#: Whether storing a memory waits for its vector: `always`, `never`, or `auto`: if the embedder is in this process.
ARBOR_EMBED_AT_STORAGE = env.str("ARBOR_EMBED_AT_STORAGE", default="auto")
