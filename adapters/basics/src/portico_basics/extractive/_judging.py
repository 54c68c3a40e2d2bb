"""What a question asks for, and how well each sentence answers it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from portico import Source
from portico_basics.extractive._text import Unit, as_read
from portico_basics.extractive._words import Words

MOST_CANDIDATES = 10_000
"""Sentences, list items, rows and blocks of code that are compared with the question."""
_MOST_TERMS = 64
_BEGINNING = 5
"""Letters that two terms must share to be alike."""
_ALONE = 0.8
"""The weight of a candidate that has one word of several."""
_MOST_RARE = 2.5
"""The weight of a term that is in no source."""
_LEAST_RARE = 0.4
_LONG = 450

_NAME = re.compile(
    r"(?:(?<![.!?]\s)(?<!^)(?:\b[A-Z]|(?<!\w)\.(?i:net\b))[\w.+#-]*(?:\s+\.?[A-Z][\w.+#-]*)*"
    r"|(?<!\w)--?[a-zA-Z][\w-]+|\b\w+_\w+|\b\w*\d\w*|`[^`]+`)"
)
_PLAIN = re.compile(r"[^\W\d_][^\W\dA-Z_]*")
_TITLE = re.compile(
    r"(?<=\w )(?:Do|Does|Did|Is|Are|Was|Were|Can|Could|Should|Would|Has|Have|To)\b"
    r"|\b(?:I|[Ww]e|[Yy]ou|[Hh]ow to) [A-Z][a-z]|\b[Hh]ow [A-Z][a-z]+ (?:is|are|was|were|do|does|did|can|should|must)\b"
)
"""A capital where no name stands: of an auxiliary, of a verb, of a measure after "how"."""
_EXACT = re.compile(r"`[^`]+`|(?<!\w)--?[a-zA-Z][\w-]+|\b\w+_\w+")
_NOT = re.compile(r"(?:\b(?:not|never|cannot|no)|n['’]t)\s+(?:be\s+)?([\w-]+)", re.IGNORECASE)
_HOW = re.compile(r"\bhow (?:do|can|to|should|would|could)\b", re.IGNORECASE)
_CODE = re.compile(r"\b(?:how|example|command|code|snippet)\b", re.IGNORECASE)
_WHAT_IS = re.compile(
    r"\s*(?:(?:what|who)(?:['’]s|\s+(?:is|are|was|were))|define|explain|what does it mean (?:that|to be|for)|"
    r"(?:what is )?the (?:meaning|definition) of)\s+(?:meant by\s+|called\s+)?(?P<subject>.+)",
    re.IGNORECASE,
)
_WHAT_DOES = re.compile(
    r"\s*what\s+(?:does|do|did)\s+(?P<subject>.+?)\s+"
    r"(?:do|mean|stand for|refer to|returns?|show|prints?|contain|control|specify|represent|indicate|hold|give)\b",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(r"\s+(?:of|in|under|for|on|with|by|that|which|from|to|at|when|if|and)\s+", re.IGNORECASE)
_NUMBER = re.compile(
    r"\bhow (?:many|much|long|often|old|large|big|far|fast|high|tall|deep|wide|heavy|few|soon)\b"
    r"|\b(?:default|maximum|minimum|limit|number"
    r"|percentage|year)\b|\b(?:which|what) (?:\w+ )?(?:code|status|port|version|date)\b",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"\b(?:which|what)\b[^,?]*?\b(?:option|flag|switch|command|setting|variable|keyword|key|parameter|argument)s?\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(
    r"(?<!page )(?<!pages )(?<!section )(?<!p\. )(?<![\d.])\d"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|hundred|thousand|none|never"
    r"|unlimited|no limit|twice|once|daily|weekly)\b",
    re.IGNORECASE,
)
_DEFAULT = re.compile(r"\bdefault", re.IGNORECASE)
_OPTION_MARK = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
_ADVICE = re.compile(
    r"\W*(?:to|use|set|run|call|add|type|press|you (?:can|may|need|must|should))\b"
    r"|.*\b(?:use|using|set|setting|pass|specify|add|run|call|with)\s+(?:the\s+|an?\s+)?[`'\"‘“$-]|.*\bby \w+ing\b",
    re.IGNORECASE | re.DOTALL,
)
_IS = re.compile(
    r"\W*\b(?:(?:is|are|was|were)(?:\s+\w+ly|\s+also|\s+just)*\s+(?P<noun>an?\b|the\b|one\b|any\b|\w+s that\b|like\b)?"
    r"|(?P<means>means?|refers? to|denotes?|stands? for|describes?|consists? of|represents?)\b)"
)
_VERB = re.compile(r"(?!is$|has$|was$|does$|this$|its$|as$)[a-z]{2,}[^sui]s")
_CALLED = re.compile(
    r"(?<!which are )(?<!which is )\b(?:called|known as|termed|named|referred to as)\s+(?:an?\s+|the\s+)?(.{3,60})",
    re.IGNORECASE,
)
_FRAGMENT = re.compile(r"[^(\[]{2,40}[)\]]")
_CONDITION = re.compile(r"\W*(?:if|when|whether|while|unless|because|since|although|once|there|where)\b", re.IGNORECASE)
_POINTS = re.compile(
    r"\W*(?:(?:please )?(?:see|refer to|read|click|consult|check out|visit)\b"
    r"|for (?:more|further|details|examples|a |an )"
    r"|more (?:information|details|on)\b|(?:this|the (?:following|next)) (?:section|chapter|page|table|document)\b"
    r"|as (?:described|explained|mentioned)\b|new in|changed in|deprecated since|table \d|figure \d)",
    re.IGNORECASE,
)
_SYMBOL_NAMES = (
    "exclamation mark ! question mark ? asterisk * slash / backslash \\ ampersand & at sign @ dollar sign $ "
    "percent sign % hash # tilde ~ semicolon ; pipe |"
)
_SYMBOLS = {name.strip(): symbol for name, symbol in re.findall(r"([a-z ]+) (\W)(?= |$)", _SYMBOL_NAMES)}
_KIND_WORDS = (
    "option command function variable method parameter flag keyword file class directive shell attribute argument "
    "module value field section term word concept program builtin tool"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit with its words; ``passage`` is the index of its source, ``position`` its index among the units there.

    ``context`` are the words of all headings and of the name, ``title`` those of the last heading, ``entry`` those of
    the term that it explains, ``nearby`` those of its neighbours, ``around`` those of the passage.
    """

    passage: int
    position: int
    unit: Unit
    text: str
    terms: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    context: frozenset[str]
    title: frozenset[str]
    entry: frozenset[str]
    nearby: frozenset[str]
    around: frozenset[str]
    document: str
    label: str
    leading: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate with ``relevance`` (0 to 1) and ``score``, by which candidates are ranked."""

    candidate: Candidate
    relevance: float
    score: float


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for: its terms, the names that must occur, the subject that is to be defined, the kind.

    ``kinds`` only say what the subject is, ``exact`` are identifiers, ``pairs`` are neighbouring terms, ``negated`` are
    the terms after a "not".
    """

    terms: tuple[str, ...]
    names: tuple[frozenset[str], ...]
    subject: frozenset[str]
    kinds: frozenset[str]
    exact: tuple[str, ...]
    pairs: frozenset[tuple[str, str]]
    negated: frozenset[str]
    symbols: tuple[tuple[frozenset[str], re.Pattern[str]], ...]
    does: bool
    practical: bool
    code: bool
    number: bool
    default: bool
    option: bool

    @classmethod
    def of(cls, question: str, words: Words) -> Asked:
        """Read a question. The forms of questions are those of English."""
        terms = tuple(dict.fromkeys(words.terms(question)))[:_MOST_TERMS]
        # German nouns have capitals, and so do the words of some titles.
        asking = _asking(question)
        spoken = words.language == "german" or asking.istitle() or _TITLE.search(asking)
        parted = (match.group().split() for match in _NAME.finditer(asking))
        kept = (" ".join(part for part in parts if not (spoken and _PLAIN.fullmatch(part))) for parts in parted)
        names = tuple(name for each in kept if (name := frozenset(words.terms(each)) & set(terms)))
        subject = kinds = frozenset[str]()
        if match := _WHAT_DOES.match(question) or _WHAT_IS.match(question):
            head, *rest = _PREPOSITION.split(match.group("subject"), maxsplit=1)
            of = rest and re.search(r"\sof\s", match.group("subject")[len(head) : len(head) + 4])
            found = frozenset(words.terms(head))
            if not (of and match.re is _WHAT_IS):
                kinds = found & frozenset(words.terms(_KIND_WORDS))
                subject = found - kinds or found
                kinds -= subject
        return cls(
            terms,
            names,
            subject,
            kinds,
            exact=tuple(match.group().strip("`").casefold() for match in _EXACT.finditer(question)),
            pairs=frozenset(itertools.pairwise(words.terms(question))),
            negated=_negated(question, words),
            symbols=tuple(
                (frozenset(words.terms(name)), re.compile(rf"(?<!\w)[\"'`“‘(]*{re.escape(symbol)}[\"'`”’)]*(?!\w)"))
                for name, symbol in _SYMBOLS.items()
                if name in question.casefold()
            ),
            does=bool(_WHAT_DOES.match(question)),
            practical=bool(_HOW.search(question)),
            code=bool(_CODE.search(question)),
            number=bool(_NUMBER.search(question)),
            default=bool(_DEFAULT.search(question)),
            option=bool(_OPTION.search(question)),
        )


def candidates(passages: Sequence[Source], units: Sequence[Sequence[Unit]], words: Words) -> list[Candidate]:
    """Return the units that can be quoted, 10,000 at most, with their words and those around them."""
    found: list[Candidate] = []
    for place, (passage, every) in enumerate(zip(passages, units, strict=True)):
        parts = every[: MOST_CANDIDATES - len(found)]
        document, _, path = (passage.name or "").partition(" › ")
        last = words.terms(path.rpartition(" › ")[2])
        named = frozenset(words.terms(passage.name or ""))
        texts = [as_read(passage.text[unit.start : unit.end]) for unit in parts]
        labels = [passage.text[slice(*unit.term)] if unit.term else "" for unit in parts]
        listed = [words.terms(text) for text in texts]
        own = [frozenset((*terms, *words.wholes(text).values())) for terms, text in zip(listed, texts, strict=True)]
        around = frozenset[str]().union(*own)
        for number, unit in enumerate(parts):
            nearby: frozenset[str] = frozenset()
            for other in (number - 1, number + 1):
                if 0 <= other < len(parts) and (parts[other].block == unit.block or other < number):
                    nearby |= own[other]
            above = words.terms(unit.heading)
            entry = words.terms(labels[number])
            found.append(
                Candidate(
                    passage=place,
                    position=number,
                    unit=unit,
                    text=texts[number],
                    terms=own[number],
                    pairs=frozenset(
                        pair for each in (listed[number], last, entry) for pair in itertools.pairwise(each)
                    ),
                    context=named.union(above),
                    title=frozenset(above or last),
                    entry=frozenset(entry),
                    nearby=nearby,
                    around=around,
                    document=document,
                    label=labels[number],
                    leading=number == 0 or parts[number - 1].heading != unit.heading,
                )
            )
    return found


def _asking(question: str) -> str:
    """Return the sentences that ask, if any does: a greeting or a signature names nothing that must occur."""
    return " ".join(each for each in re.split(r"(?<=[.!?])\s+|\n+", question) if each.endswith("?")) or question


def _negated(text: str, words: Words) -> frozenset[str]:
    return frozenset(term for match in _NOT.finditer(text) for term in words.terms(match.group(1)))


def with_meaning(judged: Sequence[Judged], cosines: Mapping[int, float]) -> list[Judged]:
    """Return the judged candidates with what their ``cosines`` with the question add; these are by index."""
    result = list(judged)
    for position, cosine in cosines.items():
        one = judged[position]
        relevance = min(1.0, one.relevance + 0.2 * max(0.0, cosine - 0.3)) if one.relevance else 0.0
        result[position] = Judged(one.candidate, relevance, one.score + 0.6 * min(0.6, max(0.0, cosine)))
    return result


def judge(question: str, found: Sequence[Candidate], words: Words) -> list[Judged]:
    """Return the candidates with relevance and score, in the same order; none if a name is in no source."""
    asked = Asked.of(question, words)
    terms = asked.terms
    if not terms or not found:
        return []
    anywhere = frozenset[str]().union(*(one.terms | one.context | one.entry for one in found))
    known = _likenesses(terms, anywhere, words.wholes(question))
    if any(not known[term] for name in asked.names for term in name):
        return []
    in_passages: dict[int, frozenset[str]] = {one.passage: one.around | one.context for one in found}
    documents = _documents(found)
    weights = _weights(terms, known, list(in_passages.values()))
    named = frozenset(term for name in asked.names for term in name)
    for term in named:
        weights[term] *= 1.6
    for term in asked.kinds:
        weights[term] = _LEAST_RARE  # "The option x" says no more than "x".
    total = sum(weights.values())
    rest = [term for term in terms if term not in named]
    total_rest = sum(weights[term] for term in rest)
    doubtful = bool(named) and (len(rest) > 1 or not any(known[term] for term in rest))
    common = [
        known[term]
        for term in terms
        if term not in named
        and sum(not known[term].keys().isdisjoint(there) for there in in_passages.values()) > 0.6 * len(in_passages)
    ]
    judged = []
    for candidate in found:
        own = candidate.terms | candidate.entry
        if not candidate.leading and all(own.isdisjoint(known[term]) for term in terms):
            judged.append(Judged(candidate, 0.0, 0.0))
            continue
        document = documents[candidate.document]
        matches = {term: _match(known[term], candidate, document) for term in terms}
        for name, symbol in asked.symbols:
            if symbol.search(candidate.text):
                matches.update((term, 1.0) for term in name if term in matches)
        covered = sum(weights[term] * match for term, match in matches.items()) / total
        if len(terms) > 1 and sum(match > 0.3 for match in matches.values()) == 1:
            # One common word of several is often chance.
            covered *= _ALONE
        least = min((matches[term] for term in named), default=1.0)
        covered *= 1.0 if least > 0.15 else 0.8 if least else 0.6  # in the passage, in the document, nowhere
        if doubtful and sum(weights[term] * (matches[term] > 0.3) for term in rest) < 0.2 * total_rest:
            # It has the name, but not what is asked of it.
            covered *= 0.6
        plain = candidate.unit.kind != "code" and _is_sentence(candidate.text, words)
        if candidate.unit.kind == "sentence" and not plain:
            covered *= 0.6
        if any(not around.keys() & (candidate.around | candidate.context) for around in common):
            # It is about something else than most of what was found.
            covered *= 0.7
        lowered = f"{candidate.text}\n{candidate.label}".casefold()
        if not all(each in lowered for each in asked.exact):
            covered *= 0.7
        score = 1.5 * covered + 0.2 / (1 + 0.3 * candidate.passage)
        if asked.pairs:
            score += 0.4 * len(asked.pairs & candidate.pairs) / len(asked.pairs)
        score += _form(asked, candidate, words) + (0.5 if asked.subject else 1.0) * _titled(
            candidate, terms, known, weights, total
        )
        if not candidate.terms.difference(*known.values()) and not candidate.entry:
            # It has no word that the question has not, such as a heading.
            score -= 0.3
        if candidate.unit.kind != "row" and not plain:
            score -= 0.4
        judged.append(Judged(candidate, covered, score))
    return judged


def _documents(found: Sequence[Candidate]) -> dict[str, frozenset[str]]:
    """Return the terms of the passages of each document."""
    passages: dict[int, Candidate] = {one.passage: one for one in found}
    documents: dict[str, frozenset[str]] = {}
    for one in passages.values():
        documents[one.document] = documents.get(one.document, frozenset()) | one.around | one.context
    return documents


def _weights(
    terms: Sequence[str], known: Mapping[str, Mapping[str, float]], passages: Sequence[frozenset[str]]
) -> dict[str, float]:
    """Return how much each term says: the fewer passages have it, the more; one that none has says most."""
    weights: dict[str, float] = {}
    for term in terms:
        holding = sum(not known[term].keys().isdisjoint(there) for there in passages)
        rare = math.log(1 + (len(passages) - holding + 0.5) / (holding + 0.5))
        weights[term] = max(_LEAST_RARE, min(_MOST_RARE, rare)) if len(passages) > 4 else 1.0 if holding else 1.5
    return weights


def _titled(
    candidate: Candidate,
    terms: Sequence[str],
    known: Mapping[str, Mapping[str, float]],
    weights: Mapping[str, float],
    total: float,
) -> float:
    """Return what counts for the beginning of a section: more when its heading has most words of the question."""
    if not (candidate.leading or candidate.unit.first):
        return 0.0
    above = candidate.context | (candidate.entry | candidate.terms if candidate.unit.first else frozenset())
    share = sum(weights[term] for term in terms if not above.isdisjoint(known[term])) / total
    heading = candidate.entry or candidate.title
    whole = bool(heading) and heading <= frozenset(terms)
    return (0.45 * share if share > 0.5 else 0.05) + (0.2 if whole else 0.0)


def _form(asked: Asked, candidate: Candidate, words: Words) -> float:
    """Return what counts for the form of a candidate, given what is asked for."""
    text, unit = candidate.text, candidate.unit
    score = 0.0
    if asked.subject:
        score += 1.6 * _explains(asked, candidate, words)
    if asked.negated:
        score += 0.3 if asked.negated & _negated(text, words) else -0.3
    if asked.number:
        score += 0.3 if _DIGITS.search(f"{candidate.label} {text}") or (asked.default and "`" in text) else -0.15
    if asked.default and (_DEFAULT.search(text) or any("default" in term for term in candidate.entry)):
        score += 0.3
    if asked.option and unit.kind != "row":
        marked = bool(_OPTION_MARK.search(candidate.label))
        score += 0.4 if unit.first and marked else 0.2 if unit.first or _OPTION_MARK.search(text) else -0.1
    if asked.practical:
        told = _ADVICE.match(text) or (unit.first and _OPTION_MARK.search(candidate.label))
        score += 0.3 if told else 0.1 if _OPTION_MARK.search(text) or "`" in text else 0.0
    if asked.practical and (unit.kind == "row" or _CONDITION.match(text)):
        score -= 0.1
    if unit.kind == "code" and not asked.code:
        score -= 0.5
    score -= 0.5 * bool(_POINTS.match(text) or (_FRAGMENT.match(text) and not candidate.label))
    score -= 0.2 * (len(text) > _LONG) + 0.4 * text.endswith("?")
    if len(text.split()) < 6 and not candidate.entry and not _DIGITS.search(text):
        score -= 0.25
    return score


def _is_sentence(text: str, words: Words) -> bool:
    """Tell whether a text has the small words and the end of a sentence; a list of values has not."""
    parts, ends = text.split(), text.endswith((".", "!", ";"))
    if len(parts) < 9:
        return len(parts) > 3 or ":" in text or ends
    # Of bugs, and of the output of a program.
    numbers = [each for part in parts if (each := part.strip(".,:;()")).isdigit() and (len(each) > 4 or not ends)]
    return sum(map(words.is_small, parts)) - len(numbers) >= 0.12 * len(parts)


def _explains(asked: Asked, candidate: Candidate, words: Words) -> float:
    """Return how much a candidate looks like the explanation of a subject, from 0 to 1."""
    text, unit = candidate.text, candidate.unit
    subject, kinds = asked.subject, frozenset(words.terms(_KIND_WORDS))
    free = kinds | candidate.context
    best = 0.0
    if unit.first and candidate.entry:
        # "git-update-ref" in its own manual explains "ref" less than the entry "ref" does.
        more = sum(not term.isdigit() for term in candidate.entry - subject - kinds)
        best = _same(subject, candidate.entry, asked.kinds | candidate.context) - 0.15 * more
    if candidate.leading and candidate.title:
        best = max(best, (0.6 if subject & candidate.terms else 0.3) * _same(subject, candidate.title, kinds))
    if _CONDITION.match(text):
        return best - 0.2
    if called := _CALLED.search(text):
        named = frozenset(words.terms(" ".join(called.group(1).split()[: len(subject) + 1])))
        best = max(best, 0.8 * _same(subject, named, free))
    if copula := _IS.search(text[:160]):
        head = frozenset(words.terms(text[: copula.start()]))
        strong = 0.6 if asked.does else 1.0
        form = strong if copula.group("noun") or copula.group("means") else 0.5 if head == subject else 0.35
        best = max(best, form * _same(subject, head, free, candidate.terms))
    parts = text.split()
    for count in range(1, min(len(subject) + 4, len(parts))):
        if _VERB.fullmatch(parts[count]) and subject <= frozenset(words.terms(" ".join(parts[:count]))):
            head = frozenset(words.terms(" ".join(parts[:count])))
            return max(best, (1.0 if asked.does else 0.4) * _same(subject, head, kinds))
    return best


def _same(
    subject: frozenset[str], head: frozenset[str], free: frozenset[str], rest: frozenset[str] = frozenset()
) -> float:
    """Return how well a head names the subject and nothing else; numbers and the words of ``free`` do not count.

    What of the subject stands in the ``rest`` of the sentence counts half.
    """
    share = (len(subject & head) + 0.5 * len(subject & rest - head)) / len(subject)
    more = sum(not term.isdigit() for term in head - subject - free)
    return max(0.0, (share if len(subject & head) > 0.6 * len(subject) else 0.0) - 0.35 * more)


def _likenesses(terms: Sequence[str], anywhere: frozenset[str], wholes: dict[str, str]) -> dict[str, dict[str, float]]:
    """Return, for each term of the question, the terms of the sources that match it, and how well.

    Equal stems match with 1, as do names in one word; "connect" and "connector", up to three more letters, with 0.7.
    """
    beginnings: dict[str, list[str]] = {}
    for term in anywhere:
        if len(term) >= _BEGINNING:
            beginnings.setdefault(term[:_BEGINNING], []).append(term)
    known: dict[str, dict[str, float]] = {}
    for term in terms:
        alike = [other for other in beginnings.get(term[:_BEGINNING], ()) if abs(len(term) - len(other)) <= 3]
        known[term] = {other: 0.7 for other in alike if other.startswith(term) or term.startswith(other)}
        if term in anywhere:
            known[term][term] = 1.0
        if term in wholes and wholes[term] in anywhere:
            known[term][wholes[term]] = 1.0
    return known


def _match(known: Mapping[str, float], candidate: Candidate, document: frozenset[str]) -> float:
    best = 0.0
    for other, likeness in known.items():
        if other in candidate.terms or other in candidate.entry:
            best = max(best, likeness)
        elif other in candidate.context:
            best = max(best, 0.75 * likeness)
        elif other in candidate.nearby:
            best = max(best, 0.4 * likeness)
        elif other in candidate.around:
            best = max(best, 0.25 * likeness)
        elif other in document:
            best = max(best, 0.15 * likeness)
    return best
