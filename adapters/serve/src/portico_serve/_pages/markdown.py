"""The words of a model as safe HTML: no markup of theirs, no address but of the web, marks that lead to passages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MARK = re.compile(r"\[\^?\d{1,9}(?:\s*[,;–-]\s*\^?\d{1,9})*\]")
_NUMBER = re.compile(r"\d+")
_HEADINGS_ABOVE = 2
_ALIGNED = re.compile(r"text-align:(left|center|right)")


def is_web_address(link: str | None) -> bool:
    """Tell whether a page may make a link of this.

    >>> is_web_address("https://example.org/"), is_web_address("javascript:alert(1)"), is_web_address("//other")
    (True, False, False)
    """
    return (link or "").lower().startswith(("http://", "https://"))


def to_html(text: str, numbers: Collection[int] = (), address: Callable[[int], str] = "#cited-{}".format) -> Markup:
    """Return Markdown as HTML; a mark such as ``[2]`` of one of the ``numbers`` leads to its ``address``.

    >>> print(to_html("It is **so** [1]. <b>", [1]), end="")
    <p>It is <strong>so</strong> <a href="#cited-1" class="cite" data-cite="1">[1]</a>. &lt;b&gt;</p>
    """
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        align = _ALIGNED.fullmatch(str(token.attrs.pop("style", "")))
        if align is not None:
            token.attrJoin("class", f"align-{align[1]}")
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + _HEADINGS_ABOVE, 6)}"
        if token.children:
            token.children = list(_inline(token.children, frozenset(numbers), address))
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - the parser lets no HTML through


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # not at import: the command line starts without it

    made = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["image", "reference"])
    made.validateLink = is_web_address  # type: ignore[method-assign, assignment]
    return made


def _inline(tokens: Sequence[Token], numbers: frozenset[int], address: Callable[[int], str]) -> Iterator[Token]:
    inside_link = False
    for token in _joined(tokens):
        if token.type == "link_open":
            inside_link = bool(token.attrs["href"])  # the parser lets `[x]()` through, which leads nowhere
            token.attrs |= {"rel": "noopener noreferrer", "target": "_blank"}
        if token.type == "text" and not inside_link and numbers:
            yield from _with_marks(token, numbers, address)
        elif inside_link or token.type not in ("link_open", "link_close"):
            yield token
        inside_link = inside_link and token.type != "link_close"


def _joined(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens with the texts beside each other as one: a bracket that opens no link stands alone."""
    last: Token | None = None
    for token in tokens:
        if last is not None and last.type == token.type == "text":
            last.content += token.content
            continue
        if last is not None:
            yield last
        last = token
    if last is not None:
        yield last


def _with_marks(token: Token, numbers: frozenset[int], address: Callable[[int], str]) -> Iterator[Token]:
    from markdown_it.token import Token

    def text(content: str) -> Token:
        return Token("text", "", 0, content=content)

    end = 0
    for mark in _MARK.finditer(token.content):
        whole, at = mark[0], 0
        if not numbers.intersection(int(each[0]) for each in _NUMBER.finditer(whole)):
            continue
        yield text(token.content[end : mark.start()])
        end = mark.end()
        alone = len(_NUMBER.findall(whole)) == 1
        for each in _NUMBER.finditer(whole):
            number = int(each[0])
            if number not in numbers:
                continue
            if not alone:
                yield text(whole[at : each.start()])
            at = each.end()
            href = {"href": address(number), "class": "cite", "data-cite": str(number)}
            yield Token("link_open", "a", 1, attrs={**href})
            yield text(whole.replace("^", "") if alone else each[0])
            yield Token("link_close", "a", -1)
        if not alone:
            yield text(whole[at:])
    yield text(token.content[end:])
