"""Facts that people state in conversations, found by rule: sentences of fixed forms, rewritten in the third person.

A fact is data: it says who stated what. Questions, requests, texts about the listener, code, quotations and secrets give none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from arbor.memory.text.code import without_code

#: The most facts of one utterance, and the longest fact, in characters.
MAX_FACTS = 3
FACT_LENGTH = 300
#: The confidence in a fact found by rule, and in a fact that the person asked to remember.
STATED_CONFIDENCE = 0.6
ASKED_CONFIDENCE = 0.7
#: The characters of an utterance that are read.
_READ = 4_000

_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?\n]?")
_OPENING = re.compile(
    r"(?:well|hi|hello|hey|so|ok|okay|oh|and|also|actually|by the way|btw)\b(?: there)?[\s,:;–-]+",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"(?:please )?(?:remember|note|keep in mind|don't forget|do not forget)(?: this| that)?(?: please)?[\s,:]+"
    r"|(?:fyi|for the record|just so you know)[\s,:]+",
    re.IGNORECASE,
)
# Texts about the listener, or that point at something outside the sentence.
_ABOUT_LISTENER = re.compile(r"\b(?:you|your|yours|yourself|you're|you've)\b", re.IGNORECASE)
_POINTING = re.compile(r"(?:it|that|this|these|those|them|how|when|what|why|if|whether|to)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|we|us|our|ours|mine|myself)\b", re.IGNORECASE)
_SECRET = re.compile(
    r"\b(?:passwords?|passphrases?|passcodes?|pins?|pin codes?|tokens?|api keys?|secrets?|private keys?|iban|cvv|cvc"
    r"|(?:credit )?card numbers?|social security)\b",
    re.IGNORECASE,
)

_MY = re.compile(r"my (?P<what>[\w' -]{2,40}?) (?P<verb>is|are|was|were) (?P<rest>.+)", re.IGNORECASE)
_VAGUE = frozenset(
    {"question", "point", "problem", "issue", "guess", "idea", "bad", "concern", "fault", "hope", "worry"}
)
_AM = re.compile(
    r"i(?:'m| am) (?P<rest>(?:not )?(?:an?|the|from|allergic|married|vegetarian|vegan|based|responsible|called|born|\d+)\b.*)",
    re.IGNORECASE,
)
_DO = re.compile(
    r"i (?P<verb>live|work|come|study|teach|speak|own|prefer|love|hate|collect|play|belong) (?P<rest>.+)",
    re.IGNORECASE,
)
_IS_MY = re.compile(r"(?P<who>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?) is my (?P<rest>.+)")
_OURS = re.compile(
    r"(?:we (?:use|run|ship|host|deploy|meet|sell|store|speak) .+|our [\w' -]{2,40}? (?:is|are|was|were) .+)",
    re.IGNORECASE,
)
# What a person asks to remember is a statement about a named subject, not an order.
_STATEMENT = re.compile(
    r"(?:[Tt]he|[Aa]n?|[Oo]ur|[Mm]y|[Tt]heir|[Hh]is|[Hh]er|I|[Ww]e) \S+ \S|[A-Z][\w'-]+ (?:is|are|was|were|has|have|had|will|can|\w+s|\w+ed) \S"
)
_THIRD: Mapping[str, str] = MappingProxyType({"teach": "teaches", "study": "studies"})


class StatedFact(NamedTuple):
    """A fact that somebody stated, with the confidence in it, 0 to 1."""

    text: str
    confidence: float


def facts_in(text: str, *, speaker: str) -> list[StatedFact]:
    """Return the facts that an utterance states, at most MAX_FACTS, each once, in order; `speaker` is a person's name."""
    found: dict[str, StatedFact] = {}
    for sentence, asked in _statements(text):
        for rule in _RULES:
            if retold := rule(sentence, speaker):
                fact = " ".join(retold.split())
                break
        else:
            if not asked or not _STATEMENT.match(sentence):
                continue
            fact = _quoted(sentence, speaker)
        if len(fact) <= FACT_LENGTH:
            found.setdefault(
                fact.casefold(), StatedFact(fact, ASKED_CONFIDENCE if asked else STATED_CONFIDENCE)
            )
    return list(found.values())[:MAX_FACTS]


def names_secret(text: str) -> bool:
    """Return whether a text names a secret, such as a password or a token, which is never proposed as a fact."""
    return _SECRET.search(text) is not None


def _statements(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the sentences that may state a fact, and whether the person asked to remember them."""
    prose = "\n".join(
        line
        # Telephones write a typographic apostrophe.
        for line in without_code(text[:_READ].replace("’", "'")).splitlines()
        if not line.lstrip().startswith((">", "|", "#"))
    )
    for match in _SENTENCE.finditer(prose):
        if len(text) > _READ and match.end() == len(prose):
            # The limit may have cut the last sentence, which then states something else.
            return
        sentence = match.group().strip().strip("-*• ")
        if not sentence or sentence.endswith("?"):
            continue
        sentence = sentence.rstrip(".!")
        while opening := _OPENING.match(sentence):
            sentence = sentence[opening.end() :]
        asked = False
        if request := _REQUEST.match(sentence):
            sentence, asked = sentence[request.end() :], True
        if asked and _POINTING.match(sentence):
            continue
        if sentence and not _ABOUT_LISTENER.search(sentence) and not names_secret(sentence):
            yield sentence, asked


def _my(sentence: str, speaker: str) -> str:
    match = _MY.fullmatch(sentence)
    if match is None or not match["what"].strip():
        return ""
    if match["what"].split()[-1].casefold() in _VAGUE or _POINTING.match(match["rest"]):
        return ""
    return _retold(
        sentence, speaker, f"{_possessive(speaker)} {match['what']} {match['verb']} {match['rest']}", match
    )


def _am(sentence: str, speaker: str) -> str:
    match = _AM.fullmatch(sentence)
    return _retold(sentence, speaker, f"{speaker} is {match['rest']}", match) if match else ""


def _do(sentence: str, speaker: str) -> str:
    match = _DO.fullmatch(sentence)
    if match is None:
        return ""
    verb = match["verb"].casefold()
    wants_more = verb in ("prefer", "love", "hate") and match["rest"].casefold().startswith("to ")
    if _POINTING.match(match["rest"]) and not wants_more:
        return ""
    return _retold(sentence, speaker, f"{speaker} {_THIRD.get(verb, f'{verb}s')} {match['rest']}", match)


def _is_my(sentence: str, speaker: str) -> str:
    match = _IS_MY.fullmatch(sentence)
    return (
        _retold(sentence, speaker, f"{match['who']} is {_possessive(speaker)} {match['rest']}", match)
        if match
        else ""
    )


def _ours(sentence: str, speaker: str) -> str:
    return _quoted(sentence, speaker) if _OURS.fullmatch(sentence) else ""


#: The rules for sentences of one form each: a rule returns the fact in words about the speaker, empty for a sentence of another form.
_RULES: tuple[Callable[[str, str], str], ...] = (_my, _am, _do, _is_my, _ours)


def _retold(sentence: str, speaker: str, retold: str, match: re.Match[str]) -> str:
    """Return the sentence in the third person, or quoted where a part that is taken over is in the first person too."""
    if any(map(_FIRST_PERSON.search, match.groupdict().values())):
        return _quoted(sentence, speaker)
    retold = re.sub(r"\bmy\b", "their", retold, flags=re.IGNORECASE)
    return f"{re.sub(r'\bme\b', 'them', retold, flags=re.IGNORECASE)}."


def _quoted(sentence: str, speaker: str) -> str:
    return f"{speaker} says: {sentence[:1].upper()}{sentence[1:]}."


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"
