"""Trust modes: the longest prefix, and the strictest of rule, ceiling and limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.agents.capabilities import SCHEME
from arbor.authority.grants import resource_of
from arbor.authority.modes import (
    CEILINGS,
    PRESETS,
    ModeSource,
    TrustMode,
    TrustPreset,
    TrustProfile,
    TrustRule,
    ceiling_of,
    check_prefix,
    effective_mode,
    limit_of_model,
    parse_model_limits,
)
from arbor.errors import CapabilityInvalid, ConfigurationInvalid

_ACTIONS = f"{SCHEME}actions/execute"
_PUBLIC, _RECALL, _TOOL = (
    f"{_ACTIONS}/{name}" for name in ("reach_out_public", "recall", "mcp.github.create_issue")
)


def _rule(prefix: str, mode: TrustMode) -> TrustRule:
    return TrustRule(prefix=prefix, mode=mode)


@pytest.mark.parametrize(
    ("preset", "resource", "mode"),
    [
        (TrustPreset.CAUTIOUS, _RECALL, TrustMode.ALLOW),
        (TrustPreset.CAUTIOUS, f"{_ACTIONS}/reach_out_user", TrustMode.ASK),
        (TrustPreset.CAUTIOUS, f"{_ACTIONS}/inquire_deep", TrustMode.ASK),
        (TrustPreset.CAUTIOUS, _TOOL, TrustMode.ASK),
        (TrustPreset.BALANCED, f"{_ACTIONS}/reach_out_user", TrustMode.ALLOW),
        (TrustPreset.BALANCED, _PUBLIC, TrustMode.ASK),
        (TrustPreset.BALANCED, _TOOL, TrustMode.ASK),
        (TrustPreset.HANDS_OFF, _PUBLIC, TrustMode.ALLOW),
        (TrustPreset.HANDS_OFF, _TOOL, TrustMode.ALLOW),
        (TrustPreset.HANDS_OFF, f"{SCHEME}fs/read/etc", TrustMode.ASK),
        (TrustPreset.HANDS_OFF, resource_of("start_workflow", {"workflow": "tides"}), TrustMode.ASK),
        (TrustPreset.FULL_TRUST, _PUBLIC, TrustMode.AUTO),
        (TrustPreset.FULL_TRUST, f"{SCHEME}shell/exec", TrustMode.ASK),
        (TrustPreset.FULL_TRUST, f"{SCHEME}agent/destroy/anna", TrustMode.ASK),
        (TrustPreset.FULL_TRUST, f"{SCHEME}agent/restore", TrustMode.AUTO),
    ],
)
def test_presets_have_their_modes(preset: TrustPreset, resource: str, mode: TrustMode) -> None:
    assert effective_mode(resource, TrustProfile(preset=preset)).mode is mode


def test_longest_prefix_wins() -> None:
    profile = TrustProfile(
        rules=(
            _rule(f"{_ACTIONS}/mcp", TrustMode.BLOCK),
            _rule(f"{_ACTIONS}/mcp.github", TrustMode.ASK),
            _rule(_TOOL, TrustMode.AUTO),
        )
    )
    assert effective_mode(_TOOL, profile).mode is TrustMode.AUTO
    assert effective_mode(f"{_ACTIONS}/mcp.github.close", profile).mode is TrustMode.ASK
    assert effective_mode(f"{_ACTIONS}/mcp.files.read", profile).mode is TrustMode.BLOCK
    # Segments are compared whole: the beginning of a name is no prefix.
    assert effective_mode(f"{_ACTIONS}/mcp.github-enterprise.close", profile).mode is TrustMode.BLOCK
    assert effective_mode(f"{_ACTIONS}/mcpx", profile).mode is TrustMode.ALLOW


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        (f"{_ACTIONS}/mcp.github.create", f"{_ACTIONS}/mcp.github.create.issue"),
        ("arbor://fs/read/notes", "arbor://fs/read/notes.txt"),
    ],
)
def test_a_rule_ends_at_the_end_of_a_name(rule: str, other: str) -> None:
    profile = TrustProfile(rules=(_rule(rule, TrustMode.BLOCK),))
    assert effective_mode(rule, profile).mode is TrustMode.BLOCK
    assert effective_mode(other, profile).mode is not TrustMode.BLOCK


def test_rule_of_agent_replaces_that_of_tenant() -> None:
    profile = TrustProfile(
        rules=(_rule(_PUBLIC, TrustMode.ALLOW),), tenant_rules=(_rule(_PUBLIC, TrustMode.BLOCK),)
    )
    decision = effective_mode(_PUBLIC, profile)
    assert (decision.mode, decision.source) == (TrustMode.ALLOW, ModeSource.RULE)


def test_longer_rule_of_tenant_wins() -> None:
    profile = TrustProfile(
        rules=(_rule(f"{_ACTIONS}/**", TrustMode.AUTO),), tenant_rules=(_rule(_PUBLIC, TrustMode.BLOCK),)
    )
    assert effective_mode(_PUBLIC, profile).mode is TrustMode.BLOCK


@pytest.mark.parametrize(
    ("rule", "preset", "mode", "source"),
    [
        # The rule of a person holds, although the preset has a longer prefix.
        (TrustMode.BLOCK, TrustPreset.HANDS_OFF, TrustMode.BLOCK, ModeSource.RULE),
        (TrustMode.ASK, TrustPreset.HANDS_OFF, TrustMode.ASK, ModeSource.RULE),
        # A longer prefix of the preset tightens it.
        (TrustMode.AUTO, TrustPreset.BALANCED, TrustMode.ASK, ModeSource.PRESET),
    ],
)
def test_preset_never_loosens_a_broader_rule(
    rule: TrustMode, preset: TrustPreset, mode: TrustMode, source: ModeSource
) -> None:
    profile = TrustProfile(preset=preset, rules=(_rule(f"{SCHEME}**", rule),))
    decision = effective_mode(_PUBLIC, profile)
    assert (decision.mode, decision.source) == (mode, source)


def test_limit_of_the_model_only_tightens() -> None:
    trusted = TrustProfile(preset=TrustPreset.FULL_TRUST)
    limited = effective_mode(_PUBLIC, trusted, model_limit=TrustPreset.BALANCED)
    assert (limited.mode, limited.source) == (TrustMode.ASK, ModeSource.LIMIT)
    strict = TrustProfile(rules=(_rule(_PUBLIC, TrustMode.BLOCK),))
    assert effective_mode(_PUBLIC, strict, model_limit=TrustPreset.FULL_TRUST).source is ModeSource.RULE


_PREFIXES = [f"{SCHEME}**", f"{_ACTIONS}/**", _PUBLIC, _TOOL, f"{SCHEME}shell/**", f"{SCHEME}shell/exec"]


@given(
    rules=st.lists(st.builds(_rule, st.sampled_from(_PREFIXES), st.sampled_from(TrustMode)), max_size=6),
    preset=st.sampled_from(TrustPreset),
    limit=st.none() | st.sampled_from(TrustPreset),
    resource=st.sampled_from([_PUBLIC, _RECALL, _TOOL, f"{SCHEME}shell/exec", f"{SCHEME}net/http/get"]),
)
def test_no_rule_exceeds_ceiling_or_limit(
    rules: list[TrustRule], preset: TrustPreset, limit: TrustPreset | None, resource: str
) -> None:
    profile = TrustProfile(preset=preset, rules=tuple(rules))
    mode = effective_mode(resource, profile, model_limit=limit).mode
    assert mode.rank <= ceiling_of(resource).rank
    if limit is not None:
        assert mode.rank <= effective_mode(resource, TrustProfile(preset=limit)).mode.rank


def test_every_prefix_is_a_known_uri() -> None:
    for rule in (*CEILINGS, *(rule for rules in PRESETS.values() for rule in rules)):
        assert check_prefix(rule.prefix) == rule.prefix


@pytest.mark.parametrize(
    "prefix", ["reach_out_public", f"{SCHEME}nothing/here", f"{_ACTIONS}/../x", f"{SCHEME}shell"]
)
def test_wrong_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(CapabilityInvalid):
        check_prefix(prefix)


def test_model_limits_are_parsed() -> None:
    limits = parse_model_limits(" ollama = cautious, openai/large=balanced")
    assert limit_of_model("ollama/x", limits) is TrustPreset.CAUTIOUS
    assert limit_of_model("openai/large", limits) is TrustPreset.BALANCED
    assert limit_of_model("openai/small", limits) is None
    for wrong in ("ollama=careful", "ollama", "olama=cautious", "=cautious", "ollama/=cautious"):
        with pytest.raises(ConfigurationInvalid, match="such as ollama=cautious"):
            parse_model_limits(wrong)
