"""Extract concepts from a text by rule: names, phrases between stop words, and repeated words.

Phrases are found as in RAKE (Rose et al., "Automatic Keyword Extraction from Individual Documents", 2010): runs of words
between stop words and punctuation. The rules are deterministic and call no model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from arbor.errors import Invalid
from arbor.memory.concepts import concept_key
from arbor.memory.text.lexical import BASE_FORMS, STOP_WORDS, UNSPACED, term_of

_TALK = """
    able actually ago agree already always amazing amid among anybody anyone anything anyway anywhere appreciate
    around ask asking away awesome aww back bad bet bit bring bringing bye check cheer chill come coming congrat
    cool cute day definitely done easier easy else enjoy enjoying even ever every everybody everyone everything
    everywhere exciting excited far feel feeling find finding first forward fun get getting give giving glad go
    going gonna good gotta great guess guys haha happen happened happening happy hard have hear hello help
    helping hey hi hope hoping huge huh idea imagine important incredible instead interesting keep keeping kind
    kinda know knowing last later learn least let let's letting like liked little lol long look looking lot love
    loved lucky make making many may maybe mean might mind mine miss month much must must've nah near nearly
    need needed never next nice nobody none nope nothing now nowhere often oh old one other otherwise ought part
    people perfect perhaps pic place please plus pretty probably put putting quite ready real really recently
    remember remind right same say saying see seeing seem seemed shall share sharing show showing since somebody
    someone something sometimes somewhat somewhere soon sorry sort sound sounding special spend start started
    starting stay staying still stuff super sure take taking talk talking tell telling thank thing think
    thinking though three time today together tomorrow ton tonight totally tough toward tried true try trying
    turn two upon use used using usually wait wanna want wanted way week well whatever whenever wherever whether
    whoa whoever wish within without woah wonder wonderful wondering woohoo word worry worth wow yay yeah year
    yep yes yesterday yet you'd you'll yup zero

    across along alongside although amongst apart aside besides beyond despite except furthermore hence hereby
    however indeed inside meanwhile moreover nevertheless onto outside per rather regarding regardless
    respectively than therefore thereby thus till unless unlike unto versus via whereas whereby

    add allow become becoming begin buy called choose consider continue create decide depend expect explain
    follow following forget grow hold hurts include including join leads leave leaving live mention move
    notice offer prefer prove reach read realize recommend remain require send serve sets sit speak stand stop
    suggest suppose teach understand wear

    big bigger biggest busy crazy different difficult enough entire extra few funny grateful large larger late
    latest main new newer older own positive proud quick sad several short simple single small smaller such
    sweet thankful top total usual various whole wrong young younger

    four five six seven eight nine ten eleven twelve hundred thousand million second third half once twice

    monday tuesday wednesday thursday friday saturday sunday mon tue wed thu thur fri january february march
    april june july august september october november december jan feb apr jun jul aug sep sept oct nov dec
"""
#: Words that name no idea, with or without a plural -s: the stop words, and words of everyday talk.
TALK_WORDS = STOP_WORDS.union(_TALK.split())

_UNCHANGED = """
    acoustics acrobatics aerobics alias analytics athletics atlas bias canvas chaos christmas clothes cosmos
    dynamics economics electronics ethics gas genetics graphics gymnastics headquarters jeans kudos lens
    linguistics logistics mathematics mechanics news obstetrics pajamas pants physics politics pyjamas robotics
    scissors series shorts species statistics tactics trousers
"""
_SAME_IN_PLURAL = frozenset(_UNCHANGED.split())
#: Singulars in -e, whose plurals the rules below would shorten too much.
_WITH_E = """
    ache avalanche axe backache birdie brownie cache calorie canoe collie cookie creche doe foe foodie genie
    headache heartache hippie hoe hoodie moustache movie mustache newbie niche oboe pixie prairie psyche quiche
    rookie selfie shoe smoothie stomachache toe tiptoe toothache veggie woe zombie
"""
_SINGULARS_WITH_E = frozenset(_WITH_E.split())
_PLURAL_IN_ES = ("sses", "xes", "ches", "shes", "zzes", "oes")


#: The most concepts of one memory, and the characters of it that are read.
MAX_CONCEPTS = 5
READ_CHARACTERS = 4_000
#: The longest name of an extracted concept, in characters, and the longest phrase, in words.
EXTRACTED_NAME_LENGTH = 60
_PHRASE_WORDS = 3
#: The strength of a concept by the way it was found, 0 to 1.
NAME_STRENGTH = 1.0
PHRASE_STRENGTH = 0.8
REPEATED_STRENGTH = 0.7
WORD_STRENGTH = 0.5
#: A word directly before an ellipsis may be cut off. `(?<!\S)` starts the search only at the beginning of a run without
#: white space, so that a long run is not searched again from each of its characters.
_CUT_WORD = re.compile(r"(?<!\S)\S+…")
_LINK = re.compile(r"(?<!\S)\S*(?:://|@)\S*|www\.\S+")
_TOKEN_PATTERN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[^\s\w]|\d[\w.,]*")
_SENTENCE_ENDS = frozenset('.!?…:;\n“"')
#: Base words of BASE_FORMS that are nouns; all other irregular forms count as verbs.
_NOUNS = "child foot goose half knife leaf life loaf man mouse person shelf thief tooth wife wolf woman"
_VERBS = frozenset(form for form, base in BASE_FORMS.items() if base not in _NOUNS.split())
#: Plurals that are usually verbs after another word, as in "the boat leaves".
_OFTEN_VERBS = frozenset({"leaves"})
_ING = frozenset(f"{base}ing" for base in BASE_FORMS.values())
#: Endings of verbs and adverbs: "sailing" can be an idea, "sailed" and "slowly" cannot.
_NOT_NOUN_ENDINGS = ("ly", "ed")


def singular(word: str) -> str:
    """Return a noun's singular in lower case, so that "boat" and "boats" are one idea."""
    folded = word.casefold()
    folded = BASE_FORMS.get(folded, folded)
    if len(folded) <= 3 or not folded.endswith("s") or folded.endswith(("ss", "us", "is")):
        return folded
    if folded in _SAME_IN_PLURAL:
        return folded
    if folded[:-1] in _SINGULARS_WITH_E:
        return folded[:-1]
    if len(folded) > 4 and folded.endswith("ies"):
        return f"{folded[:-3]}y"
    if folded.endswith(_PLURAL_IN_ES):
        return folded[:-3] if folded.endswith("zzes") else folded[:-2]
    return folded[:-1]


class ExtractedConcept(NamedTuple):
    """An idea, and the strength with which the memory is a case of it, 0 to 1."""

    name: str
    strength: float


class _Token(NamedTuple):
    text: str
    #: Whether the word begins a sentence, so that its capital means nothing.
    first: bool


def concepts_in(text: str) -> tuple[ExtractedConcept, ...]:
    """Return the distinct ideas that a text names, the strongest first."""
    runs = list(_runs(_CUT_WORD.sub(" . ", _LINK.sub(" . ", _beginning(text)))))
    counts = Counter(term_of(token.text.casefold()) for run in runs for token in run)
    by_key: dict[str, ExtractedConcept] = {}
    for run in runs:
        for concept in (*_names(run), *_phrases(run), *_words(run, counts)):
            key = concept.name.casefold()
            if concept.strength > by_key.get(key, ExtractedConcept("", 0.0)).strength and _can_be_concept(
                concept.name
            ):
                by_key[key] = concept
    # The sort is stable: equally strong ideas stay in the order of the text.
    best = sorted(by_key.values(), key=lambda concept: -concept.strength)
    return tuple(_without_parts(best)[:MAX_CONCEPTS])


def _beginning(text: str) -> str:
    """Return the beginning of a text that is read, without a word that the limit cuts, unless it is the only word."""
    beginning = text[:READ_CHARACTERS]
    if len(text) == len(beginning) or beginning[-1].isspace() or text[len(beginning)].isspace():
        return beginning
    return beginning.rsplit(maxsplit=1)[0]


def _can_be_concept(name: str) -> bool:
    try:
        concept_key(name)
    except Invalid:
        # Compatibility normalization expands some characters to whole phrases.
        return False
    return len(name) <= EXTRACTED_NAME_LENGTH


def _runs(text: str) -> Iterator[list[_Token]]:
    """Yield runs of words between stop words and punctuation."""
    run: list[_Token] = []
    first = True
    for part in _TOKEN_PATTERN.findall(text):
        word = part.replace("’", "'").removesuffix("'s")
        if _is_informative(word) and not (run and word.casefold() in _OFTEN_VERBS):
            run.append(_Token(word, first))
        elif run:
            yield run
            run = []
        first = part in _SENTENCE_ENDS or (first and not part[0].isalnum())
    if run:
        yield run


def _is_informative(word: str) -> bool:
    folded = word.casefold()
    return (
        word[0].isalpha()
        and 2 < len(word) <= EXTRACTED_NAME_LENGTH
        and folded not in TALK_WORDS
        and singular(folded) not in TALK_WORDS
        # In a script without spaces, a run of letters is a sentence.
        and not UNSPACED.search(word)
    )


def _names(run: list[_Token]) -> Iterator[ExtractedConcept]:
    """Yield runs of capitalized words as names, except a single one at the beginning of a sentence."""
    name: list[_Token] = []
    for token in (*run, _Token("", False)):
        if token.text[:1].isupper():
            name.append(token)
            continue
        if name and not (len(name) == 1 and name[0].first):
            yield ExtractedConcept(" ".join(token.text for token in name[:_PHRASE_WORDS]), NAME_STRENGTH)
        name = []


def _phrases(run: list[_Token]) -> Iterator[ExtractedConcept]:
    """Yield a run of two or three words that can be a noun with its attributes."""
    words = [token.text for token in run if _can_be_noun(token.text)]
    if (
        len(words) == len(run)
        and 2 <= len(words) <= _PHRASE_WORDS
        and not any(map(_is_capitalized, words[1:]))
    ):
        yield ExtractedConcept(
            " ".join([*(word.casefold() for word in words[:-1]), singular(words[-1])]), PHRASE_STRENGTH
        )


def _words(run: list[_Token], counts: Counter[str]) -> Iterator[ExtractedConcept]:
    for token in run:
        if _can_be_noun(token.text) and (token.first or not _is_capitalized(token.text)):
            is_repeated = counts[term_of(token.text.casefold())] > 1
            yield ExtractedConcept(singular(token.text), REPEATED_STRENGTH if is_repeated else WORD_STRENGTH)


def _without_parts(ranked: list[ExtractedConcept]) -> list[ExtractedConcept]:
    """Leave out words that occur only in a stronger name or phrase: "reef" beside "coral reef"."""
    used: set[str] = set()
    selected: list[ExtractedConcept] = []
    for concept in ranked:
        words = concept.name.casefold().split()
        if concept.strength > WORD_STRENGTH or words[0] not in used:
            selected.append(concept)
        used.update(words)
    return selected


def _can_be_noun(word: str) -> bool:
    folded = word.casefold()
    return (
        folded not in _VERBS
        and folded not in _ING
        and not (len(folded) > 4 and folded.endswith(_NOT_NOUN_ENDINGS))
    )


def _is_capitalized(word: str) -> bool:
    return word[0].isupper()
