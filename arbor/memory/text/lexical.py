"""Lexical vectors: texts as sparse vectors whose inner product is BM25.

The document's part (saturated term frequency, length) is stored; the query's part (the rarity of a term among the agent's
memories) is computed for each query, so storing a memory never changes another one. Robertson and Zaragoza, "The
Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import snowballstemmer

_STOP = """
    a about above after again against all also am an and any are aren't as at be because been before being
    below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down
    during each few for from further had hadn't has hasn't have haven't having he he'd he'll her here hers
    herself him himself his how i i'd i'll i'm i've if in into is isn't it it'd it'll its itself just let me
    more most mustn't my myself no nor not of off ok okay on once only or other ought our ours ourselves out
    over own same shan't she she'd she'll should shouldn't so some such than that that'll the their theirs
    them themselves then there these they they'd they'll they're they've this those through to too under
    until up very was wasn't we we'd we'll we're we've were weren't what when where which while who who'd
    who'll whom whose why will with won't would wouldn't you you'd you'll you're you've your yours yourself
    yourselves
"""
#: Words that occur in most texts, so that a shared one means nothing: the list of the Snowball project and a few words of
#: everyday talk. ("it's" is missing because possessives are removed first.)
STOP_WORDS = frozenset(_STOP.split())

_FORMS = """
    beat beaten|become became|begin began begun|bend bent|bite bit bitten|bleed bled|blow blew blown
    break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen
    cling clung|come came|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk
    drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled
    fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
    get got gotten|give gave given|go goes went gone|grow grew grown|hang hung|hear heard
    hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|lean leant|leap leapt
    learn learnt|leave left|lend lent|light lit|lose lost|make made|mean meant|meet met|mistake mistook mistaken
    pay paid|prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen
    seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank
    sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|speed sped|spell spelt
    spend spent|spin spun|spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung
    strike struck|strive strove|swear swore sworn|sweep swept|swell swollen|swim swam swum|swing swung
    take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown
    understand understood|undo undid undone|wake woke woken|wear wore worn|weave wove woven|weep wept|win won
    withdraw withdrew withdrawn|write wrote written
    child children|foot feet|goose geese|half halves|knife knives|leaf leaves|life lives|loaf loaves|man men
    mouse mice|person people|shelf shelves|thief thieves|tooth teeth|wife wives|wolf wolves|woman women
    good better best|bad worse worst|far farther further
"""

#: Base forms of irregular verbs, plurals and comparisons, so that a question with "buy" finds "bought". The stemmer, which
#: runs afterwards, removes regular endings.
BASE_FORMS: dict[str, str] = {
    form: base
    for line in _FORMS.replace("\n", "|").split("|")
    if line.strip()
    for base, *forms in [line.split()]
    for form in forms
}


#: The dimensions of pgvector's sparsevec; terms are hashed to 1 up to this.
LEXICAL_DIMENSIONS = 1_000_000_000
#: The most terms stored of one text: a B-tree tuple of the covering index has 2,704 bytes, 8 for each term.
MAX_TERMS = 200
#: The saturation of repeated words, BM25's k1 (the middle of the usual 0.9 to 2).
SATURATION = 1.2
#: The penalty of long texts, 0 to 1, BM25's b. It is below the usual 0.75, because turns of talk are short and the longer
#: ones say more. docs/explanation/recall.md has the curve, which is flat from 0.2 to 0.6.
LENGTH_NORM = 0.4
#: The usual length of a text, in terms. It is fixed, so that a stored vector never has to be computed again.
USUAL_LENGTH = 12.0

#: Longer words are cut, because they are no words and would fill the caches.
_LONGEST_WORD = 40
# Not after another group: a search from there has failed already, and would fail here again.
_FIRST_GROUP = r"\d{3}" + "".join(rf"(?<!(?<![\w.'])\d{{{count}}},\d{{3}})" for count in (1, 2, 3))
#: The words and numbers of a text. The time is linear, also for long lists of numbers without blanks.
WORD_PATTERN = (
    rf"(?:\d{{1,2}}|{_FIRST_GROUP})(?:,\d{{3}})+(?![\d,])(?:\.\d+)?"  # 12,000.50
    r"|\d+(?:\.\d+)+"  # 3.5, 1.2.3
    r"|[^\W_]+(?:'[^\W_]+)*"  # don't, o'clock, café, gpt4
)
_WORDS = re.compile(WORD_PATTERN)
_APOSTROPHES = "’‘ʼ＇"
#: Scripts that write words without spaces: Thai, Lao, Khmer, kana, Han.
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
#: The highest weight of a term in a stored vector, and the weight of the speaker's name.
MAX_TERM_WEIGHT = SATURATION + 1
_SPEAKER_WEIGHT = 1.0
_NAME_WORDS = 8
#: Roles that are no names of speakers: "which system" does not mean them.
_MACHINES = frozenset({"environment", "system", "tool", "tool_result", "function"})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerm:
    """One word of a query, with its indices as a word and as a speaker's name."""

    word: str
    #: 0 for a stop word, which counts only as a speaker's name ("Will").
    index: int
    speaker_index: int


def words_of(text: str) -> Iterator[str]:
    """Yield the text's words: case folded, without possessives, stop words included."""
    for word in _WORDS.findall(fold(text)):
        yield from _parts_of(word)


def fold(text: str) -> str:
    """Normalize a text for comparison: compatible characters, plain apostrophes, no capitals."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text)
    # `replace` for a few characters is ten times as fast as `translate`.
    for apostrophe in _APOSTROPHES:
        text = text.replace(apostrophe, "'")
    return text.casefold()


def _parts_of(word: str) -> Iterable[str]:
    """Return the comparable parts of a folded word: the word, or pairs of characters in scripts without spaces."""
    if word.isascii():
        return (word.replace(",", "").removesuffix("'s")[:_LONGEST_WORD],)
    return _split_unspaced(word.removesuffix("'s"))


def _split_unspaced(word: str) -> Iterator[str]:
    """Yield the word, runs of unspaced scripts cut into pairs of characters that overlap."""
    end = 0
    for run in UNSPACED.finditer(word):
        if run.start() > end:
            yield word[end : run.start()][:_LONGEST_WORD]
        characters = run.group()
        yield from (characters[i : i + 2] for i in range(max(1, len(characters) - 1)))
        end = run.end()
    if end < len(word):
        yield word[end:][:_LONGEST_WORD]


_stemmers = threading.local()


@lru_cache(maxsize=50_000)
def term_of(word: str) -> str:
    """Return the common term of a word and its inflections: "buy" for "bought", "buying" and "buys"."""
    word = BASE_FORMS.get(word, word)
    if not word.isascii():
        return word
    # A stemmer has state, so each thread has its own. It is pure Python, hence the cache.
    if not hasattr(_stemmers, "english"):
        _stemmers.english = snowballstemmer.stemmer("english")
    return str(_stemmers.english.stemWord(word))


@lru_cache(maxsize=100_000)
def term_index(term: str) -> int:
    """Return the term's index in the vector, 1 to LEXICAL_DIMENSIONS, the same in every process and release."""
    digest = hashlib.blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) % LEXICAL_DIMENSIONS + 1


def speaker_index(word: str) -> int:
    """Return the index of a word as the name of a speaker, apart from its index as a word."""
    return term_index(f"speaker:{word}")


def document_vector(text: str, *, speaker: str = "") -> dict[int, float]:
    """Return the stored vector of a text: the weights of at most MAX_TERMS terms, each from 0 to 2.2.

    The heaviest terms are stored, the first of equally heavy ones. `speaker` is a role or a name.
    """
    counts = Counter(_indices_in(text))
    length = 1 - LENGTH_NORM + LENGTH_NORM * counts.total() / USUAL_LENGTH
    vector = {speaker_index(word): _SPEAKER_WEIGHT for word in speaker_words(speaker)}
    saturated = SATURATION * length
    for index, count in counts.most_common(MAX_TERMS - len(vector)):
        vector[index] = count * MAX_TERM_WEIGHT / (count + saturated)
    return vector


def _indices_in(text: str) -> Iterator[int]:
    """Return the indices of a text's terms, in order and with repetitions."""
    words = _WORDS.findall(fold(text))
    # Overlong words would fill the cache, so they bypass it.
    short = max(map(len, words), default=0) <= 2 * _LONGEST_WORD
    return chain.from_iterable(map(_indices_of if short else _indices_of.__wrapped__, words))


@lru_cache(maxsize=100_000)
def _indices_of(word: str) -> tuple[int, ...]:
    """Return the indices of the terms of a folded word; none for a stop word."""
    return tuple(term_index(term_of(part)) for part in _parts_of(word) if part not in STOP_WORDS)


def speaker_words(speaker: str) -> frozenset[str]:
    """Return the words that name a speaker in a query; a machine's role has none."""
    if speaker.casefold() in _MACHINES:
        return frozenset()
    words = list(words_of(speaker))[:_NAME_WORDS]
    return frozenset(word for word in words if word not in STOP_WORDS) or frozenset(words)


# Cached because a heartbeat parses its focus three times: for statistics, for the embedding, for the recall.
@lru_cache(maxsize=256)
def query_terms(text: str) -> tuple[QueryTerm, ...]:
    """Return the distinct terms of a query in order, at most the first MAX_TERMS."""
    terms: dict[str, QueryTerm] = {}
    capitals = {word.casefold().removesuffix("'s") for word in re.findall(r"\b[A-Z]['\w]*", text)}
    for word in words_of(text):
        stop = word in STOP_WORDS
        if word in terms or (stop and word not in capitals):
            continue
        index = 0 if stop else term_index(term_of(word))
        terms[word] = QueryTerm(word=word, index=index, speaker_index=speaker_index(word))
        if len(terms) == MAX_TERMS:
            break
    return tuple(terms.values())


def counted_indices(terms: tuple[QueryTerm, ...]) -> frozenset[int]:
    """Return the indices of terms whose document frequencies `query_vector` and `named_speakers` need."""
    return frozenset({term.index for term in terms} | {term.speaker_index for term in terms}) - {0}


def named_speakers(terms: tuple[QueryTerm, ...], df: Mapping[int, int]) -> frozenset[str]:
    """Return the words of the query that are names of speakers of the agent's memories."""
    return frozenset(term.word for term in terms if df.get(term.speaker_index, 0) > 0)


def query_vector(terms: tuple[QueryTerm, ...], df: Mapping[int, int], documents: int) -> dict[int, float]:
    """Return the query's vector, whose inner product with a stored vector is from 0 to 1.

    `df` counts the memories with a term, among the agent's `documents` memories. The product is BM25 divided by its highest
    possible value. The name of a speaker matches both as a word and as the speaker, and its rarity is that of both
    together, so that the name of one of two speakers weighs little.
    """
    vector: dict[int, float] = {}
    most = 0.0
    used: set[int] = set()
    for term in terms:
        speaker_count = df.get(term.speaker_index, 0)
        index = term.index or term.speaker_index
        if index in used or (term.index == 0 and not speaker_count):
            continue
        used.add(index)
        idf = _idf(df.get(term.index, 0) + speaker_count, documents)
        most += idf * MAX_TERM_WEIGHT
        if df.get(term.index, 0):
            vector[term.index] = idf
        if speaker_count:
            most += idf * _SPEAKER_WEIGHT
            vector[term.speaker_index] = idf
    return {index: weight / most for index, weight in vector.items()}


def _idf(with_term: int, documents: int) -> float:
    """Return the inverse document frequency: nearly 0 when every memory has the term, about ln(2·documents) when none has."""
    documents = max(0, documents)
    with_term = min(max(0, with_term), documents)
    return math.log(1 + (documents - with_term + 0.5) / (with_term + 0.5))
