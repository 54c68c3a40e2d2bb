"""A rendered prompt: text with marked-up messages, and the messages in it."""

from __future__ import annotations

import base64
import html
import re
from typing import TYPE_CHECKING, NoReturn, cast
from unicodedata import east_asian_width

from portico._chat.messages import Image, Message, Part, Role, Text
from portico.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

_BEFORE = 40
_SHOWN = 80

_DATA = re.compile(r"data:(image/[^,;]++)(?:;[^,;]*)*?;base64,", re.IGNORECASE)


def image_of(url: str) -> Image:
    r"""Return the picture of an http, https or data URL.

    >>> image_of("data:image/png;base64,iVBORw==").data
    b'\x89PNG'

    Raises ``ValueError`` for anything else: a prompt may not send files of this machine.
    """
    if re.match(r"https?://\S+\Z", url, re.IGNORECASE):
        return Image(url=url)
    found = _DATA.match(url)
    if found is None:
        raise ValueError("An <image> holds an http or https URL, or a data URL such as data:image/png;base64,…")
    try:
        data = base64.b64decode("".join(url[found.end() :].split()), validate=True)
    except ValueError as error:
        raise ValueError("The data URL of this <image> is not base64.") from error
    return Image(data=data, media_type=found[1].lower())


_ROLES = ("system", "user", "assistant")
_TAG = re.compile(r"<(/?)(message|text|image)(?=[\s/>]|\Z)|<!\[CDATA\[")
_MESSAGE_TAG = re.compile(r"<(/?)(message)(?=[\s/>]|\Z)")
_OPENING = re.compile(r"<message(?=[\s/>]|\Z)")
_ATTRIBUTE = re.compile(r"""\s++([^\s=/>"']++)\s*+=\s*+("[^"]*+"|'[^']*+')""")
_REST_OF_TAG = re.compile(r"""((?:\s++[^\s=/>"']++\s*+=\s*+(?:"[^"]*+"|'[^']*+'))*+)\s*+(/?)>""")
_END_OF_TAG = re.compile(r"\s*+>")
_ENTITY = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_EDGE = "&#0;"
"""Stands before and after each value: it keeps a value apart from the template's text, and is read as nothing."""


def encode_prompt(prompt: Prompt) -> Trusted:
    """Write a prompt as one trusted text with the same messages, to put it into another prompt.

    >>> prompt = Prompt([("<message role='user'>", False), ("</message>", True), ("</message>", False)])
    >>> [message.text for message in Prompt([(encode_prompt(prompt), False)]).messages()]
    ['</message>']
    """
    text = _encode(prompt.pieces)
    if not _OPENING.search(text):
        text = f'<message role="user">{_encode([(prompt, True)])}</message>'
    return Trusted(text)


def _encode(pieces: Iterable[tuple[str, bool]]) -> str:
    """Join pieces to a text in which values cannot be markup."""
    return "".join(f"{_EDGE}{html.escape(text)}{_EDGE}" if is_value else text for text, is_value in pieces)


def _decode(text: str) -> str:
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return _NAMED[found[1]]
    number = int(found[2]) if found[2] else int(found[3], 16)
    if number == 0:
        return ""
    # What XML does not know as a character stays as it is written.
    return chr(number) if number < 0xD800 or 0xE000 <= number <= 0x10FFFF else found[0]


class _Reader:
    """Reads the messages of an encoded prompt; ``position`` is the end of what is read."""

    def __init__(self, text: str, name: str, untrusted: tuple[str, ...] | None) -> None:
        self.text = text
        self.name = name
        self.untrusted = untrusted
        self.position = 0

    def messages(self) -> Iterator[Message]:
        role: Role = "system"
        while tag := _MESSAGE_TAG.search(self.text, self.position):
            if tag[1]:
                self.refuse("This closes a message that was not opened.", tag.start(), tag.end() + 1)
            yield from self.outside(role, tag.start())
            yield self.message(tag)
            role = "user"
        yield from self.outside(role, len(self.text))

    def outside(self, role: Role, end: int) -> Iterator[Message]:
        text = _decode(self.text[self.position : end].strip())
        if text.strip():
            yield Message.of(role, text, untrusted=self.untrusted)

    def message(self, opening: re.Match[str]) -> Message:
        attributes, closed = self.attributes(opening, ("role", "name"))
        role = attributes.get("role", "").strip().casefold()
        if role not in _ROLES:
            advice = " Results of tools answer a model's calls; a template cannot write them." if role == "tool" else ""
            self.refuse(
                f'A message needs a role: <message role="user">. It is one of {", ".join(_ROLES)}, not {role[:40]!r}.'
                f"{advice}",
                opening.start(),
                self.position,
            )
        parts = [] if closed else [*self.parts(opening)]
        content, name = tuple(parts) or (Text(""),), attributes.get("name") or None
        # What is filled into an answer may be a model's, and it is not known what that model read.
        unknown = role == "assistant" and not self.untrusted and _EDGE in self.text[opening.start() : self.position]
        return Message(cast("Role", role), content, name, None if unknown else self.untrusted)

    def attributes(self, opening: re.Match[str], known: Collection[str]) -> tuple[dict[str, str], bool]:
        """Read a tag to its end; tell whether it closes itself."""
        rest = _REST_OF_TAG.match(self.text, opening.end())
        if rest is None:
            self.refuse(
                f'The tag <{opening[2]} is not closed, or an attribute in it is not written name="value".',
                opening.start(),
                opening.end(),
            )
        self.position = rest.end()
        attributes = {}
        for found in _ATTRIBUTE.finditer(self.text, *rest.span(1)):
            if found[1] not in known:
                advice = f"; it has {' and '.join(known)}" if known else ""
                self.refuse(f"<{opening[2]}> has no attribute {found[1][:40]!r}{advice}.", *found.span(1))
            attributes[found[1]] = _decode(found[2][1:-1])
        return attributes, bool(rest[2])

    def parts(self, opening: re.Match[str]) -> Iterator[Part]:
        """Read a message up to its closing tag."""
        while tag := _TAG.search(self.text, self.position):
            if text := _decode(self.text[self.position : tag.start()].strip()):
                yield Text(text)
            if tag[2] is None:
                self.refuse("A message has no <![CDATA[ section: write &lt; for <, or a quoted value.", *tag.span())
            if tag[2] == "message":
                if not tag[1]:
                    self.refuse("A message cannot stand inside another one.", *tag.span())
                self.close(tag)
                return
            if tag[1]:
                self.refuse(f"This closes a <{tag[2]}> that was not opened.", *tag.span())
            yield self.part(tag)
        self.refuse("This message is not closed: </message> is missing.", *opening.span())

    def part(self, opening: re.Match[str]) -> Part:
        _, closed = self.attributes(opening, ())
        content = ""
        if not closed:
            start = self.position
            closing = _TAG.search(self.text, start)
            if closing is None or closing[2] != opening[2] or not closing[1]:
                self.refuse(f"This <{opening[2]}> is not closed: </{opening[2]}> is missing.", *opening.span())
            content = self.text[start : closing.start()]
            self.close(closing)
        if opening[2] == "text":
            return Text(_decode(content))
        try:
            return image_of(_decode(content.strip()))
        except ValueError as error:
            self.refuse(str(error), *opening.span())

    def close(self, closing: re.Match[str]) -> None:
        end = _END_OF_TAG.match(self.text, closing.end())
        if end is None:
            self.refuse(f"The tag </{closing[2]} is not closed.", *closing.span())
        self.position = end.end()

    def refuse(self, message: str, start: int, end: int) -> NoReturn:
        """Raise the error of a place."""
        at = len(self.text[:start].replace(_EDGE, ""))
        length = len(self.text[start:end].replace(_EDGE, ""))
        raise Prompt.fault(message, self.text.replace(_EDGE, ""), at, length, name=self.name)


class Prompt(str):
    """The text of a rendered prompt that remembers which of it are values.

    Its ``pieces`` are texts, each with whether it is a value: a value is data, nothing in it counts as markup. A
    template language returns one where its template may have markup, a plain string where it has none. Whatever is done
    to it as a string gives a plain string, in which nothing is markup; `map` keeps the roles. A value that is empty is
    a piece too: it parts what the template wrote before it from what it wrote after. ``untrusted`` is what its messages
    have, see `Message`.

    >>> prompt = Prompt(
    ...     [("<message role='user'>", False), ("</message> or <b>", True), ("</message>", False)]
    ... )
    >>> prompt
    "<message role='user'></message> or <b></message>"
    >>> [(message.role, message.text) for message in prompt.messages()]
    [('user', '</message> or <b>')]
    """

    __slots__ = ("pieces", "untrusted")

    pieces: tuple[tuple[str, bool], ...]
    untrusted: tuple[str, ...] | None

    def __new__(cls, pieces: Iterable[tuple[str, bool]], untrusted: tuple[str, ...] | None = None) -> Prompt:
        """Join the pieces."""
        pieces = tuple(pieces)
        prompt = super().__new__(cls, "".join(text for text, is_value in pieces))
        prompt.pieces = pieces
        prompt.untrusted = untrusted
        return prompt

    def __getnewargs__(self) -> tuple[tuple[tuple[str, bool], ...]]:  # type: ignore[override]  # str's are its text
        return (self.pieces,)

    def messages(self, name: str = "") -> tuple[Message, ...]:
        """Return the messages for a chat service; errors begin with ``name``.

        Text before the first message is a system message, text between and after them a user message each; blanks
        alone are none. A prompt without a tag ``<message`` is one user message, as it is. In others the entities of
        XML (``&lt;``, ``&#60;``) in the template's own text are decoded, once, and the blanks around a message are not
        part of it. A message may hold ``<text>`` and ``<image>`` parts.

        Raises ``TemplateError`` for an unknown role or attribute, and for a tag that is not closed or stands inside
        another. Its line is the line of the rendered prompt; columns count values as they are encoded.
        """
        text = _encode(self.pieces)
        if not _OPENING.search(text):
            return (Message.of("user", str(self), untrusted=self.untrusted),)
        name = f"{name}, rendered prompt" if name else "rendered prompt"
        return tuple(_Reader(text, name, self.untrusted).messages())

    def map(self, change: Callable[[str], str], *, values_only: bool = False) -> Prompt:
        """Return the prompt with each piece's text changed, values and template told apart as before.

        >>> Prompt([("To ", False), ("ada@example.org", True)]).map(lambda text: text.replace("@", " at "))
        'To ada at example.org'

        ``values_only`` leaves alone what the template wrote, markup included.
        """
        changed = (
            (text, is_value) if values_only and not is_value else (change(text), is_value)
            for text, is_value in self.pieces
        )
        return Prompt(changed, self.untrusted)

    @staticmethod
    def fault(message: str, source: str, at: int, length: int = 1, *, name: str = "prompt") -> TemplateError:
        """Return the error of ``length`` characters of a template's ``source``, from the index ``at`` on.

        >>> print(Prompt.fault("There is no name.", "Dear {{$}},", 7))
        prompt, line 1, column 8: There is no name.
          Dear {{$}},
                 ^

        Of a long line only what stands around the place is shown, at most 80 characters. Under a wide letter, such as
        東, stands a wide blank: so the mark is in its place on the screen too.
        """
        line = source.count("\n", 0, at) + 1
        begin = source.rfind("\n", 0, at) + 1
        end = source.find("\n", at)
        column = at - begin
        first = max(0, column - _BEFORE)
        last = min(len(source) if end < 0 else end, begin + first + _SHOWN)
        shown = "".join(letter if letter.isprintable() else " " for letter in source[begin + first : last])
        left = "… " if first else ""
        marked = max(1, min(length, last - at))
        under = "".join("\u3000" if east_asian_width(letter) in "FW" else " " for letter in shown[: column - first])
        return TemplateError(
            f"{name}, line {line}, column {column + 1}: {message}\n"
            f"  {left}{shown.rstrip()}\n"
            f"  {' ' * len(left)}{under}{'^' * marked}",
            line=line,
            column=column + 1,
        )


class Trusted(str):
    """A text of which the application vouches: a template takes it as its own, markup included.

    >>> Trusted("<message role='user'>Hello</message>").upper().__class__.__name__
    'str'

    Nothing of what a user, a model or a page wrote belongs in one.
    """

    __slots__ = ()
