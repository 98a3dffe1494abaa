"""Detect phrases that the words before them deny or forbid ("I will never lie to you"), in English.

A negation counts only where it governs the phrase: nothing but words that extend it ("ever", "want to", "help anyone")
may be between the two. Any other word ends the negation: "never mind, …", "I can't sleep, …", "why not …".
"""

from __future__ import annotations

import re

# The characters before a phrase, within its sentence, that are searched for a negation.
_CHARACTERS_BEFORE = 120
_SENTENCES_BEFORE = re.compile(r".*[.!?;:\n]", re.DOTALL)

_PERSON_WORD = r"(?:you|me|us|them|him|her|people|others|users?|agents?|clients?|customers?|readers?|children|owners?|team|board|public|(?:any|some|every)(?:one|body))"
_SOMEONE = rf"(?:(?:the|an?|any|our|your|my|their) )?{_PERSON_WORD}"
_AUXILIARY = r"(?:am|is|are|was|were|be|do|does|did|have|has|had|will|would|shall|should|can|could|may|might|must|ought|need)"
_MODAL = r"(?:will|would|shall|should|can|could|may|might|must|do|does|did|am|is|are)"
_WRONGS = (
    *("wrong", "bad", "illegal", "unlawful", "forbidden", "dishonest", "unethical", "immoral", "prohibited"),
    "unacceptable",
)
_WRONG = rf"(?:{'|'.join(_WRONGS)})"
_RIGHT = r"(?:right|fine|okay|ok|good|fair|honest|legal|ethical|acceptable|allowed|possible|safe|appropriate)"

# A bare "not" is no sign of a negation ("like it or not", "why not"), and neither is a question ("can't you").
_NEGATIONS = (
    r"(?:do|does|did|is|are|was|were|have|has|had|wo|would|sha|should|ca|could|might|must|need)n'?t"
    r"(?: you (?:dare|ever)(?: to)?)?",
    r"cannot",
    rf"(?:{_AUXILIARY}|\w+'(?:m|re|s|d|ll|ve))(?: (?:definitely|certainly|absolutely|also|really|probably))? not",
    r"(?:and|but|also|rather|better|please) not",
    r"(?<!reason )not to",
    r"(?:(?<!now or )(?<!than )never|nor|neither|no longer|under no circumstances?|on no account|in no way)"
    rf"(?: {_MODAL} (?:i|you|we|he|she|it|they|anyone))?",
    r"(?:nobody|no one|no-one|neither of \w+|none of \w+)"
    rf"(?= (?:ever|{_MODAL}|(?:say|think|believe|mean|want|ask|tell|need)(?:s|ed)?|said|thought|meant|told) )",
    rf"no (?:(?!(?:i|you|we|they) )\w+ ){{1,2}}{_MODAL}",
    r"no (?:need|reason|wish|plans?|intention) to",
    r"(?:refuse[sd]?|(?<!stop )refusing|declined?|declines|unable|unwilling) to",
    rf"(?:(?:so|very|always|that|morally|simply) )?{_WRONG}(?: (?:for|of) {_SOMEONE})? to",
)
#: Each negation contains one of these, so texts without any are not searched.
_HINTS = ("n't", "nt", "no", "never", "neither", "refus", "declin", "unable", "unwilling", *_WRONGS)
_EXTENSIONS = (
    r"(?:ever|again|even|also|actually|really|knowingly|willingly|deliberately|intentionally|consciously|secretly)",
    r"(?:to|be|been|have|had|will|would|shall|should|can|could|may|might|must)",
    r"(?:want|wish|intend|plan|mean|like|try|dare|attempt|agree|have|has|had|need|ought)(?:s|ed|ing)? to",
    r"(?:able|willing|permitted|supposed|going|ready|prepared|meant|here|about|asked|told|made|forced) to",
    rf"(?:an? (?:good|great) idea|{_RIGHT}(?: (?:for|of) {_SOMEONE})?) to",
    r"(?:my|our|your) (?:job|place|way|aim|goal|task|role|intention) to",
    rf"(?:want|ask|tell|allow|permit|expect|force|encourage|teach|advise|instruct|get|help)(?:s|ed|ing)? {_SOMEONE} to",
)
# "I will not let anybody …", but not "if you cannot help me tell me …".
_HELPING = rf"(?:help|let|make|have|watch|see)(?:s|ing)? {_SOMEONE}"
# Phrases that may be between commas.
_PARENTHETICAL = r"(?:ever|at all|in any way|for any reason|by any means|on any account|under any circumstances|in good conscience)"

# Models also write **not**, so asterisks count as blanks.
_BLANK = r"[ \t*]+"


def _compile_negation(*further: str, between: str = "") -> re.Pattern[str]:
    """Compile the pattern of negations, and the words that extend them, at the end of a text.

    `further` are patterns of more words that extend a negation; `between` is a pattern of the words between those and the phrase.
    """
    negation = rf"(?<![\w'])(?:{'|'.join(_NEGATIONS)})"
    unit = rf"(?:{'|'.join((*_NEGATIONS, *_EXTENSIONS, *further, _PARENTHETICAL))})"
    chain = rf"{negation}(?: {unit}|, {_PARENTHETICAL},?)*"
    return _compile_spaced(rf"{chain}{between} [\"“]?$")


def _compile_spaced(expression: str) -> re.Pattern[str]:
    # A look-behind needs a fixed length, so its blanks are not replaced.
    parts = re.split(r"(\(\?<!.*?\))", expression)
    return re.compile("".join(part if "(?<!" in part else part.replace(" ", _BLANK) for part in parts))


_NEGATION = _compile_spaced(rf"(?<![\w'])(?:{'|'.join(_NEGATIONS)})(?![\w'])")

# An explicit request, which a negation before it does not revoke.
_EXPLICIT_REQUEST = re.compile(r"please\b|let us\b|let's\b|how (?:do|can|could)\b|(?:stop|quit) \w+ and\b")
# "I do not think that you should …".
_CLAIM_HEAD = re.compile(r"(?:i will|i'll|we will|we should|you should|you must)\b")
_NEGATED_CLAIM = _compile_negation(
    between=r" (?:(?:think|believe|say|mean|suggest|claim|feel|agree)s?|true|said|saying|suggesting)(?: that)?"
)
# "I cannot give you any instructions on how to …".
_INSTRUCTION_HEAD = re.compile(r"(?:how|ways?|plans?|instructions|best) (?:how )?to\b")
_NEGATED_INSTRUCTION = _compile_negation(
    _HELPING,
    between=r"(?: (?:tell|show|teach|explain|describe|say|share|give|provide|discuss|reveal|offer|write|publish|post|send|help|assist|advise)"
    rf"(?:(?: to)? {_SOMEONE})?(?: (?:with|on|about|of|for|any|the|some|detailed|details|directions|instructions|information|advice|ever))*)?",
)
_REQUEST_HEAD = re.compile(r"(?:tell|show|teach|give|send|help|find|get) (?:me|us)\b")
_NEGATED_REQUEST = _compile_negation()
# "We never deceive, mislead or …".
_NEGATED_ACT = _compile_negation(_HELPING, between=r"(?: [\w']+(?:(?:, [\w']+)+,|(?: [\w']+){0,3}) or)?")

_PATTERNS_BY_HEAD = (
    (_CLAIM_HEAD, _NEGATED_CLAIM),
    (_INSTRUCTION_HEAD, _NEGATED_INSTRUCTION),
    (_REQUEST_HEAD, _NEGATED_REQUEST),
)


def is_negated(text: str, start: int, end: int) -> bool:
    """Return whether the phrase from `start` to `end` of a lower-case text is denied or forbidden by the words before it.

    A double negation does not count: "it is not wrong to …", "never refuse to …".
    """
    phrase = text[start:end].lstrip().replace("’", "'")
    before = _SENTENCES_BEFORE.sub("", text[max(start - _CHARACTERS_BEFORE, 0) : start]).replace("’", "'")
    if _EXPLICIT_REQUEST.match(phrase) or not any(hint in before for hint in _HINTS):
        return False
    negation = next(
        (pattern for head, pattern in _PATTERNS_BY_HEAD if head.match(phrase)), _NEGATED_ACT
    ).search(before)
    return negation is not None and len(_NEGATION.findall(negation.group())) % 2 == 1
