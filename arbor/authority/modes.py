"""Trust modes: rules by the longest prefix, presets, ceilings, and the strictest of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType

from arbor.agents.capabilities import SCHEME, CapabilityUri
from arbor.errors import ConfigurationInvalid
from arbor.models.handles import Provider
from arbor.setting_lists import name_values

#: Rules of one agent, and of one tenant, at most.
MAX_RULES = 100
_EVERYTHING = f"{SCHEME}**"
_CACHED_URIS = 4096
_CACHED_MODES = 4096


class TrustMode(StrEnum):
    """The permission of an agent to act without a person; the strictest first."""

    #: The action never runs.
    BLOCK = "block"
    #: The action waits for a person's approval.
    ASK = "ask"
    #: The action runs.
    ALLOW = "allow"
    #: The action runs as under `allow`; the origin of seed 000 has both, and of the two `allow` counts as the stricter.
    AUTO = "auto"

    @property
    def rank(self) -> int:
        """Return the position among the modes, 0 for the strictest."""
        return _ORDER[self]

    @property
    def runs(self) -> bool:
        """Return whether actions run without a person."""
        return self in (TrustMode.ALLOW, TrustMode.AUTO)


_ORDER = {mode: rank for rank, mode in enumerate(TrustMode)}


class TrustPreset(StrEnum):
    """A named set of rules, for resources without a rule of a person."""

    #: Whatever leaves the installation waits for a person, and so does the start of a workflow.
    CAUTIOUS = "cautious"
    #: Whatever is published waits for a person, and so do tools and the start of a workflow.
    BALANCED = "balanced"
    #: Every action runs that the agent may do at all, except the start of a workflow, which waits for a person.
    HANDS_OFF = "hands_off"
    #: Everything runs; only the ceilings remain.
    FULL_TRUST = "full_trust"


#: The preset of an agent for which nobody has chosen one.
DEFAULT_PRESET = TrustPreset.HANDS_OFF


class ModeSource(StrEnum):
    """The origin of a mode."""

    #: A rule that a person has set.
    RULE = "rule"
    #: The agent's preset.
    PRESET = "preset"
    #: A ceiling of the installation.
    CEILING = "ceiling"
    #: A limit of the model in use.
    LIMIT = "limit"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrustRule:
    """The mode of a resource and of everything below it; `prefix` is an `arbor://` URI."""

    prefix: str
    mode: TrustMode


@dataclass(frozen=True, kw_only=True, slots=True)
class TrustProfile:
    """The trust in one agent: its preset, its rules, and the rules of its tenant."""

    preset: TrustPreset = DEFAULT_PRESET
    rules: tuple[TrustRule, ...] = ()
    #: Rules for all agents of the tenant, which a rule of the agent for the same prefix replaces.
    tenant_rules: tuple[TrustRule, ...] = ()


#: The trust in an agent without rules.
DEFAULT_PROFILE = TrustProfile()


@dataclass(frozen=True, kw_only=True, slots=True)
class ModeDecision:
    """The mode of a resource, and the prefix and source of the rule that decided."""

    mode: TrustMode
    prefix: str
    source: ModeSource

    def __str__(self) -> str:
        return f"{self.mode} by the {self.source} {self.prefix}"


def _rules(modes: Mapping[str, TrustMode]) -> tuple[TrustRule, ...]:
    return tuple(TrustRule(prefix=prefix, mode=mode) for prefix, mode in modes.items())


#: Modes that no rule exceeds.
CEILINGS = _rules(
    {
        f"{SCHEME}{prefix}": TrustMode.ASK
        for prefix in (
            "shell/**",
            "governance/**",
            "net/**",
            "trust/**",
            "agent/create",
            "agent/destroy",
            "agent/spawn",
            "agent/spawn_worker",
            "consensus/admin",
        )
    }
)

_ACTION_PATH = ("actions", "execute")
_ACTIONS = SCHEME + "/".join(_ACTION_PATH)
PRESETS: Mapping[TrustPreset, tuple[TrustRule, ...]] = MappingProxyType(
    {
        TrustPreset.CAUTIOUS: _rules(
            {
                _EVERYTHING: TrustMode.ASK,
                f"{_ACTIONS}/**": TrustMode.ALLOW,
                f"{_ACTIONS}/reach_out_user": TrustMode.ASK,
                f"{_ACTIONS}/reach_out_agent": TrustMode.ASK,
                f"{_ACTIONS}/reach_out_public": TrustMode.ASK,
                f"{_ACTIONS}/inquire_shallow": TrustMode.ASK,
                f"{_ACTIONS}/inquire_deep": TrustMode.ASK,
                f"{_ACTIONS}/mcp": TrustMode.ASK,
            }
        ),
        TrustPreset.BALANCED: _rules(
            {
                _EVERYTHING: TrustMode.ASK,
                f"{_ACTIONS}/**": TrustMode.ALLOW,
                f"{_ACTIONS}/reach_out_public": TrustMode.ASK,
                f"{_ACTIONS}/mcp": TrustMode.ASK,
            }
        ),
        TrustPreset.HANDS_OFF: _rules({_EVERYTHING: TrustMode.ASK, f"{_ACTIONS}/**": TrustMode.ALLOW}),
        TrustPreset.FULL_TRUST: _rules({_EVERYTHING: TrustMode.AUTO}),
    }
)


# Every action of every heartbeat asks for its mode, and profiles seldom change.
@lru_cache(maxsize=_CACHED_MODES)
def effective_mode(
    resource: str,
    profile: TrustProfile,
    *,
    model_limit: TrustPreset | None = None,
) -> ModeDecision:
    """Return the strictest of the longest matching rule, the ceilings, and the limit of the model."""
    candidates = [_of_profile(resource, profile)]
    if (ceiling := _longest(resource, CEILINGS)) is not None:
        candidates.append(ModeDecision(mode=ceiling.mode, prefix=ceiling.prefix, source=ModeSource.CEILING))
    if model_limit is not None and (rule := _longest(resource, PRESETS[model_limit])) is not None:
        candidates.append(ModeDecision(mode=rule.mode, prefix=rule.prefix, source=ModeSource.LIMIT))
    # Of equal modes, the first one wins, because a person can change it.
    return min(candidates, key=lambda candidate: candidate.mode.rank)


def ceiling_of(resource: str) -> TrustMode:
    """Return the mode that no rule for this resource exceeds."""
    rule = _longest(resource, CEILINGS)
    return rule.mode if rule is not None else TrustMode.AUTO


def check_prefix(text: str) -> str:
    """Return the prefix of a rule in its canonical form. Raises CapabilityInvalid."""
    return str(CapabilityUri.parse(text.strip()))


def limit_of_model(handle: str, limits: Mapping[str, TrustPreset]) -> TrustPreset | None:
    """Return the preset that an agent may not exceed with a model; the entry of the model goes before its provider's."""
    return limits.get(handle) or limits.get(handle.partition("/")[0])


def parse_model_limits(text: str) -> dict[str, TrustPreset]:
    """Parse `ollama=cautious,openai/gpt-6-luna=balanced`: presets by provider or `provider/model`. Raises ConfigurationInvalid."""
    limits: dict[str, TrustPreset] = {}
    for entry, model, preset in name_values(text, setting="ARBOR_MODEL_TRUST"):
        provider, slash, name = model.partition("/")
        if provider not in Provider or bool(slash) != bool(name) or preset not in TrustPreset:
            raise ConfigurationInvalid(
                f"ARBOR_MODEL_TRUST: a model's limit of trust is one of {', '.join(TrustPreset)}, such as ollama=cautious, for a provider of"
                f" {', '.join(Provider)}, or its model; got {entry!r}"
            )
        limits[model] = TrustPreset(preset)
    return limits


def _of_profile(resource: str, profile: TrustProfile) -> ModeDecision:
    """Return the mode by the rules of people and the preset, whichever has the longer prefix.

    A longer prefix of the preset does not loosen what a person's rule says: a person who blocks everything means it.
    """
    # A stable choice: of equal prefixes, the agent's rule comes before the tenant's, and both before the preset.
    rule = _longest(resource, (*profile.rules, *profile.tenant_rules))
    preset = _longest(resource, PRESETS[profile.preset])
    assert preset is not None, "each preset has a rule for everything"
    is_finer = rule is not None and len(_parts(preset.prefix)) > len(_parts(rule.prefix))
    if rule is None or (is_finer and preset.mode.rank < rule.mode.rank):
        return ModeDecision(mode=preset.mode, prefix=preset.prefix, source=ModeSource.PRESET)
    return ModeDecision(mode=rule.mode, prefix=rule.prefix, source=ModeSource.RULE)


def is_below(resource: str, prefix: str) -> bool:
    """Return whether a rule for the prefix concerns the resource: it is the same, or below it."""
    parts = _parts(prefix)
    return _parts(resource)[: len(parts)] == parts


def _longest(resource: str, rules: Iterable[TrustRule]) -> TrustRule | None:
    matching = [rule for rule in rules if is_below(resource, rule.prefix)]
    return max(matching, key=lambda rule: len(_parts(rule.prefix)), default=None)


@lru_cache(maxsize=_CACHED_URIS)
def _parts(uri: str) -> tuple[str, ...]:
    """Return the segments of a URI without a final wildcard; the name of a tool is three segments: `mcp`, server and tool."""
    segments = CapabilityUri.parse(uri).segments
    path, action = segments[:-1], segments[-1:]
    # A tool's own name, or that of a file, may have full stops.
    return (*path, *action[0].split(".", maxsplit=2)) if path == _ACTION_PATH else segments
