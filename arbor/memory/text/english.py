"""English stop words and irregular word forms."""

from __future__ import annotations

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
