"""Words in the form in which they are compared, and the language of a text."""

from __future__ import annotations

import re
from functools import cache

import snowballstemmer

STOP_WORDS = {
    "english": """
        anybody anyone everybody everyone nobody somebody someone a about actually all also always am an and any
        anything are as at be because been being between both but by can cannot could did do does doing done each
        either else ever every exactly few for from get gets give given had happen happens has have having he her here
        hers him his how i if in into is it its just kind let like made make makes many may me mean means might mine
        more most much must my need needed needs no not of off on once one only or other our out over own per please
        possible quite really same say shall she should so some something sort such take takes tell than that the
        their them then there these they thing things this those to too under up upon us use used using very was way
        we were what whatever when where which while who whom whose why will with within without would you your yours
        what's it's i'm how's don't doesn't can't explain describe
    """,
    "german": """
        aber alle allem allen aller alles als also am an auch auf aus bei bin bis bitte da damit dann das dass dem den
        denn der des die dies diese diesem diesen dieser dieses doch du durch ein eine einem einen einer eines er es
        etwas für gibt haben hat hier ich ihr im in ist ja kann können man mehr mein mich mir mit muss müssen nach
        nicht noch nur ob oder ohne sein sich sie sind so soll über um und uns unter viel viele vom von vor wann war
        warum was wegen weil welche welchem welchen welcher welches wenn wer werden weshalb wie wieso wird wo wohin
        woher wozu wurde zu zum zur
    """,
    "french": """
        à au aux avec ce ces cet cette combien comme comment dans de des du elle elles en est et être faire fait il
        ils je la le les leur lui ma mais me même mes moi mon ne nos notre nous on ont où ou par pas plus pour
        pourquoi quand que quel quelle quelles quels qui quoi sa sans se ses si son sont sur ta te tes toi ton tu un
        une vos votre vous y a l'on qu'est c'est d'un d'une
    """,
    "spanish": """
        a al algo como cómo con cual cuál cuáles cuando cuándo cuanto cuánto cuántos cuántas de del desde donde dónde
        el él ella ellos en entre es esa ese eso esta está este esto estos hay la las le les lo los más me mi muy no
        nos o para pero por porque qué que quien quién quiénes se ser si sin sobre son su sus también tiene tu un una
        uno unos y ya puedo puede
    """,
    "italian": """
        a ai al alla anche che chi ci come con cosa da dal dalla de del della delle di dove e è ed essere gli ha ho i
        il in io la le lo loro ma mi nel nella no non o per perché più posso può qual quale quali quando quanti quanto
        quante questa questo se si sono su sua suo sul sulla ti tra tu un una uno
    """,
    "dutch": """
        aan al als bij dan dat de deze die dit doe door een en er had hebben heeft het hij hoe hoeveel ik in is je kan
        kunnen maar me meer met mijn moet na naar niet nog nu of om onder ons ook op over te tot uit van veel voor
        waar waarom wanneer was wat we welke wie wij word worden wordt zal ze zich zijn zo zou
    """,
    "portuguese": """
        a ao aos as até com como da das de do dos e é ela ele em entre é esta está este eu foi há isso isto já mais
        mas me meu muito na não nas no nos o onde os ou para pela pelo por porque posso pode qual quais quando quanto
        quantos quantas que quê quem se sem ser seu sua são também tem um uma
    """,
}
"""Words without a topic, by Snowball's name of the language."""

IRREGULAR_ENGLISH = """
began begun begin, bought buy, broke broken break, brought bring, built build, caught catch, children child, chose
chosen choice choose, data datum, drew drawn draw, failure fail, fell fallen fall, felt feel, forgot forgotten forget,
found find, gone went go, grew grown growth grow, held hold, hidden hide, indices index, kept keep, knew known
knowledge know, led lead, left leave, lost loss lose, made make, men man, met meet, paid payment pay, people person,
ran run, said say, saw seen see, sent send, shown show, sold sell, spent spend, spoke spoken speak, stood stand, taught
teach, thought think, threw thrown throw, told tell, took taken take, understood understand, women woman, won win,
wrote written write, displays displayed displaying display show, deletes deleted deleting delete erases erased erase
remove, permits permit allow, modifies modified modifying modify change
"""
"""Groups: the forms, and what means the same, then their base."""


_ACRONYMS = frozenset(("AS", "CAN", "IT", "US", "WHO"))
"""Names that are small words but for their capitals."""
_HOMOGRAPHS = "bin comment con come den door dove hat la man nun os plus son te ton van war word"
"""English words, and names of programs, that are small words of other languages."""
_WORD = re.compile(r"\b[^\W\d_]#(?![\w#])|[^\W_]+(?:['’][^\W_]+|\+\+)?")
_COMPOUND = re.compile(r"\b\w*(?:[^\W_]_|[a-z](?=[A-Z]))\w+")
_DOTNET = re.compile(r"(?<!\w)(asp|ado|vb|)\.net\b", re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LETTERS = (
    "Japanese \u3040-\u30ff Korean \uac00-\ud7af Chinese \u4e00-\u9fff Russian \u0400-\u04ff Greek \u0370-\u03ff "
    "Arabic \u0600-\u06ff Hebrew \u0590-\u05ff Hindi \u0900-\u097f Thai \u0e00-\u0e7f"
)
_SCRIPTS: dict[str, str] = dict(re.findall(r"(\S+) (\S+)", _LETTERS))
"""A language of each script, and its letters."""
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


class Words:
    """Makes the terms of a text in one language. Stemmers have state: use one object for one call.

    A term is a Snowball stem. Irregular English forms become their base first, names such as
    ``get_text_search_results`` and ``SearchConnector`` are split, and scripts without spaces between words become pairs
    of characters.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._stemmer = snowballstemmer.stemmer(language)
        self._stop = stop_words(language)
        self._irregular = self._bases() if language == "english" else {}
        self._known: dict[str, tuple[str, ...]] = {}
        self._beginnings: frozenset[str] = frozenset()

    def compare_with(self, question: str) -> None:
        """Stem only words that may be forms of the question's from now on; the others stay as they are, for speed.

        An English stem has the first letters of its word. In other languages all words are stemmed.
        """
        if self.language == "english":
            terms = {*self.terms(question), *(match.group().casefold() for match in _WORD.finditer(question))}
            parts = {part.casefold() for term in terms for part in _HUMP.split(term)}
            self._beginnings = frozenset(term[:3] for term in parts)
            self._known = {}

    def terms(self, text: str) -> list[str]:
        """Return the terms of ``text`` in order, without stop words."""
        found: list[str] = []
        known = self._known
        for word in _WORD.findall(_DOTNET.sub(r"\1 dotnet", text)):
            terms = known.get(word)
            if terms is None:
                terms = known[word] = tuple(self._terms_of(word))
            found += terms
        return found

    def wholes(self, text: str) -> dict[str, str]:
        """Return names such as "GitHub" and "is_empty" as one term, by each term of their parts."""
        names = ((name, self.terms(name.replace("_", "").casefold())) for name in _COMPOUND.findall(text))
        return {part: whole for name, wholes in names for whole in wholes for part in self.terms(name)}

    def is_small(self, word: str) -> bool:
        """Tell whether a word says nothing of a topic."""
        return word.casefold().strip(".,;:()'\"“”") in self._stop

    def _terms_of(self, word: str) -> list[str]:
        if len(word) > 80:
            return []
        if _UNSPACED.search(word):
            return [pair for run in _UNSPACED.findall(word) for pair in _pairs(run)]
        found = []
        for part in _HUMP.split(word):
            folded = part.casefold().replace("’", "'")
            if folded in self._stop:
                whole = self._stemmer.stemWord(word.casefold())
                if (word in _ACRONYMS or part != word) and whole not in found:  # "MySQL" is more than "SQL"
                    found.append(whole)
                continue
            head, _, tail = folded.partition("'")
            folded = head if len(head) > 2 or not tail else tail
            if tail == "t" and head.endswith("n"):
                continue
            if folded not in self._stop:
                if self._beginnings and folded[:3] not in self._beginnings and folded not in self._irregular:
                    found.append(folded)
                    continue
                stem = self._stemmer.stemWord(folded)
                found.append(self._irregular.get(folded) or self._irregular.get(stem, stem))
        return found

    def _bases(self) -> dict[str, str]:
        """Return the stem of the base by each irregular form and by its stem."""
        bases = {}
        for group in IRREGULAR_ENGLISH.split(","):
            *forms, base = group.split()
            stem = self._stemmer.stemWord(base)
            for form in forms:
                bases[form] = bases[self._stemmer.stemWord(form)] = stem
        return bases


def language_of(question: str) -> str:
    """Return the language with the most stop words in the question, English when several have as many."""
    return max(hits := _count_small(question), key=hits.__getitem__)


def likely_language(text: str) -> str | None:
    """Return the language that the letters or the small words of a text show, and None if they show none.

    >>> likely_language("Comment changer le message ?"), likely_language("faiss index"), likely_language("man bin")
    ('French', None, None)
    """
    letters = sum(map(str.isalpha, text)) or 1
    for language, script in _SCRIPTS.items():
        if len(re.findall(f"[{script}]", text)) > 0.3 * letters:
            return language
    hits = _count_small(text)
    best, second = sorted(hits, key=lambda language: -hits[language])[:2]
    clear = hits[best] >= 2 and hits[best] > hits[second] and hits[best] >= 0.2 * len(_WORD.findall(text))
    return best.capitalize() if clear else None


def _count_small(text: str) -> dict[str, int]:
    """Return how many words are small ones of each language, none if English has all of these, whatever they mean."""
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(text)]
    counts = {language: sum(word in stop_words(language) for word in words) for language in STOP_WORDS}
    foreign = set(words).difference(stop_words("english"), _HOMOGRAPHS.split())
    return {each: n if each == "english" or foreign & stop_words(each) else 0 for each, n in counts.items()}


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the words without a topic of a language."""
    return frozenset(STOP_WORDS[language].split())


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[place : place + 2] for place in range(len(run) - 1)]
