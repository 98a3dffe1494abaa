"""English nouns for the extraction of concepts: singular forms, and words that name no idea."""

from __future__ import annotations

from arbor.memory.english import BASE_FORMS, STOP_WORDS

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
#: What names no idea: the stop words, and words of everyday talk, each with its regular -s.
TALK_WORDS = STOP_WORDS.union(_TALK.split())

_UNCHANGED = """
    acoustics acrobatics aerobics alias analytics athletics atlas bias canvas chaos christmas clothes cosmos
    dynamics economics electronics ethics gas genetics graphics gymnastics headquarters jeans kudos lens
    linguistics logistics mathematics mechanics news obstetrics pajamas pants physics politics pyjamas robotics
    scissors series shorts species statistics tactics trousers
"""
_SAME_IN_PLURAL = frozenset(_UNCHANGED.split())
#: Singulars whose ending the rules below would take off as well.
_WITH_E = """
    ache avalanche axe backache birdie brownie cache calorie canoe collie cookie creche doe foe foodie genie
    headache heartache hippie hoe hoodie moustache movie mustache newbie niche oboe pixie prairie psyche quiche
    rookie selfie shoe smoothie stomachache toe tiptoe toothache veggie woe zombie
"""
_SINGULARS_WITH_E = frozenset(_WITH_E.split())
_PLURAL_IN_ES = ("sses", "xes", "ches", "shes", "zzes", "oes")


def singular(word: str) -> str:
    """Return a noun's singular, in small letters, so that boat and boats are one idea."""
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
