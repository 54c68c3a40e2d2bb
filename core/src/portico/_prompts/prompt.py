"""A rendered prompt: text with marked-up messages, and the messages in it."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NoReturn, cast
from unicodedata import east_asian_width
from urllib.parse import unquote_to_bytes

from portico._chat.messages import Image, Message, Part, Role, Text
from portico.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_BEFORE = 40
_SHOWN = 80


_DATA = re.compile(r"data:([^,;]*+)((?:;[^,;]*+)*+),", re.IGNORECASE)


def image_of(url: str) -> Image:
    r"""Return the picture of an http, https or data URL.

    >>> image_of("data:image/png;base64,iVBORw==").data
    b'\x89PNG'

    Raises ``ValueError`` for anything else: a path of this machine is nothing that a prompt may send away.
    """
    if url[:5].lower() == "data:":
        found = _DATA.match(url)
        kind = found[1].lower() if found else ""
        if found is None or not kind.startswith("image/"):
            raise ValueError("The data URL of an <image> begins data:image/png;base64, or with another kind of image.")
        content = url[found.end() :]
        if not found[2].lower().endswith(";base64"):
            return Image(data=unquote_to_bytes(content), media_type=kind)
        try:
            return Image(data=base64.b64decode("".join(content.split()), validate=True), media_type=kind)
        except (binascii.Error, ValueError) as error:
            raise ValueError("The data URL of this <image> is not base64.") from error
    if not re.match(r"https?://[^\s]+\Z", url, re.IGNORECASE):
        raise ValueError("An <image> holds an http, https or data URL, and nothing else.")
    return Image(url=url)


def url_of(image: Image) -> str:
    r"""Return the URL that `image_of` reads as this picture.

    >>> url_of(Image(data=b"\x89PNG"))
    'data:image/png;base64,iVBORw=='
    """
    if image.url is not None:
        return image.url
    return f"data:{image.media_type};base64,{base64.b64encode(image.data or b'').decode()}"


_ROLES = ("system", "user", "assistant")
_VALUE = "\0"
_OPENING = re.compile(r"<message(?=[\s/>\0]|$)")
_TAG = re.compile(r"<(/?)(message|text|image)(?=[\s/>\0]|$)|<!\[CDATA\[")
_ATTRIBUTE = re.compile(r"""\s++([^\s=/>"'\0]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_END_OF_TAG = re.compile(r"\s*+(/?)>")
_ENTITY = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_ENTITIES = str.maketrans({written: f"&{name};" for name, written in _NAMED.items()})
_BLANKS_AROUND = re.compile(r"\A\s++|\s++\Z")
_MESSAGE_SHOWN = 40


def read_messages(prompt: Prompt, name: str = "") -> tuple[Message, ...]:
    """Return the messages of a prompt.

    >>> prompt = Prompt([("Be kind. <message role='user'>", False), ("Hi", True), ("</message>", False)])
    >>> [(message.role, message.text) for message in read_messages(prompt)]
    [('system', 'Be kind.'), ('user', 'Hi')]

    Text before the first message is a system message, text between and after them a user message each; blanks alone
    are none. A prompt without a tag ``<message`` is one user message, as it is. In others the entities of XML
    (``&lt;``, ``&#60;``) in what the template wrote are decoded, once, and the blanks around a message are not part
    of it. A message may hold ``<text>`` and ``<image>`` parts, and ``<![CDATA[…]]>``.

    Raises ``TemplateError`` for what is no message: a role or an attribute that there is not, a tag that is not
    closed or stands inside another. Its line and column are those of the rendered prompt.
    """
    mask = _Mask(prompt, f"{name}, rendered prompt" if name else "rendered prompt")
    if not _OPENING.search(mask.text):
        return (Message.of("user", str(prompt)),)
    return tuple(_Reader(mask).messages())


def encoded(prompt: Prompt) -> Trusted:
    """Write a prompt as one text that means the same messages where it is trusted.

    >>> prompt = Prompt([("<message role='user'>", False), ("1 < 2", True), ("</message>", False)])
    >>> print(encoded(prompt))
    <message role="user">1 &lt; 2</message>

    For saving, and for putting one prompt into another. Raises what `read_messages` does.
    """
    return Trusted("\n".join(map(_written, prompt.messages())))


def _written(message: Message) -> str:
    name = f' name="{_encode(message.name)}"' if message.name else ""
    match message.content:
        case (Text(text),):
            content = _encode(text)
        case parts:
            content = "".join(map(_part_written, parts))
    return f'<message role="{message.role}"{name}>{content}</message>'


def _part_written(part: Part) -> str:
    if isinstance(part, Image):
        return f"<image>{_encode(url_of(part))}</image>"
    assert isinstance(part, Text)  # noqa: S101 - a prompt has no other parts
    return f"<text>{_encode(part.text)}</text>"


def _encode(text: str) -> str:
    """Write a text with entities, blanks at its ends too: a reader takes those for the template's layout."""
    text = text.translate(_ENTITIES)
    return _BLANKS_AROUND.sub(lambda found: "".join(f"&#{ord(letter)};" for letter in found[0]), text)


class _Mask:
    """The template's own text with a NUL for each value; its own NULs count as values."""

    def __init__(self, prompt: Prompt, name: str) -> None:
        self.prompt = prompt
        self.name = name
        self.values: list[str] = []
        parts: list[str] = []
        for text, is_value in prompt.pieces:
            if is_value:
                self.values.append(text)
                parts.append(_VALUE)
            else:
                parts.append(text)
                self.values += [_VALUE] * text.count(_VALUE)
        self.text = "".join(parts)
        self.places = [found.start() for found in re.finditer(_VALUE, self.text)] if self.values else []

    def read(self, start: int, end: int, *, decode: bool = True) -> str:
        """Return what stands between two places, with the values, and entities of the template decoded."""
        own = self.text[start:end].split(_VALUE)
        if decode:
            own = [_decoded(text) for text in own]
        if len(own) == 1:
            return own[0]
        first = bisect_left(self.places, start)
        values = self.values[first : first + len(own) - 1]
        return "".join(text for pair in zip(own, (*values, ""), strict=True) for text in pair)

    def refuse(self, message: str, at: int, length: int) -> NoReturn:
        """Raise the error of a place, as it is in the rendered prompt."""
        start, end = self.place(at), self.place(at + length)
        raise Prompt.fault(message, str(self.prompt), start, end - start, name=self.name)

    def place(self, at: int) -> int:
        """Return where a place of the mask is in the rendered prompt."""
        before = bisect_left(self.places, at)
        return at - before + sum(map(len, self.values[:before]))


class _Reader:
    def __init__(self, mask: _Mask) -> None:
        self.mask = mask
        self.text = mask.text
        self.position = 0

    def messages(self) -> Iterator[Message]:
        role: Role = "system"
        while found := self.tag("message", self.position):
            if found[1]:
                self.mask.refuse("This closes a message that was not opened.", found.start(), 10)
            yield from self.between(found.start(), role)
            yield self.message(found.start(), found.end())
            role = "user"
        yield from self.between(len(self.text), role)

    def tag(self, name: str, start: int) -> re.Match[str] | None:
        while found := _TAG.search(self.text, start):
            if found[2] == name:
                return found
            start = found.end()
        return None

    def between(self, end: int, role: Role) -> Iterator[Message]:
        text = self.inside(self.position, end)
        if text.strip():
            yield Message.of(role, text)

    def inside(self, start: int, end: int) -> str:
        """Read a stretch without the template's blanks around it; those of values stay."""
        start += _blanks(self.text[start:end])
        return self.mask.read(start, end - _blanks(self.text[start:end][::-1]))

    def message(self, start: int, position: int) -> Message:
        attributes, closed = self.attributes(start, position, "message", ("role", "name"))
        if "role" not in attributes:
            self.mask.refuse('A message needs a role: <message role="user">.', start, self.position - start)
        role = attributes["role"].strip().casefold()
        if role not in _ROLES:
            advice = " Results of tools answer a model's calls; a template cannot write them." if role == "tool" else ""
            given = attributes["role"][:_MESSAGE_SHOWN]
            self.mask.refuse(
                f"A message's role is one of {', '.join(_ROLES)}, not {given!r}.{advice}", start, self.position - start
            )
        parts = () if closed else self.parts(start)
        return Message(cast("Role", role), parts or (Text(""),), attributes.get("name") or None)

    def attributes(self, start: int, position: int, tag: str, known: Sequence[str]) -> tuple[dict[str, str], bool]:
        """Read a tag to its end, where it leaves the position; tell whether it closes itself."""
        attributes: dict[str, str] = {}
        while True:
            end = _END_OF_TAG.match(self.text, position)
            if end:
                self.position = end.end()
                return attributes, bool(end[1])
            found = _ATTRIBUTE.match(self.text, position)
            if found is None:
                self.mask.refuse(
                    f'The tag <{tag} is not closed, or an attribute in it is not written name="value".',
                    start,
                    position - start,
                )
            name = found[1]
            if name not in known:
                advice = f"; it has {' and '.join(known)}" if known else ""
                self.mask.refuse(
                    f"<{tag}> has no attribute {name[:_MESSAGE_SHOWN]!r}{advice}.", found.start(1), len(name)
                )
            if name in attributes:
                self.mask.refuse(f"The attribute {name!r} stands twice.", found.start(1), len(name))
            attributes[name] = self.mask.read(*found.span(2 if found[2] is not None else 3))
            position = found.end()

    def parts(self, opened: int) -> tuple[Part, ...]:
        """Read a message up to its closing tag."""
        parts: list[Part] = []
        texts: list[tuple[int, int, bool]] = []
        start = position = self.position
        while True:
            found = _TAG.search(self.text, position)
            if found is None:
                self.mask.refuse("This message is not closed: </message> is missing.", opened, len("<message"))
            if found[2] is None:
                end = self.text.find("]]>", found.end())
                if end < 0:
                    self.mask.refuse("The section <![CDATA[ is not closed.", found.start(), len(found[0]))
                texts += [(start, found.start(), True), (found.end(), end, False)]
                start = position = end + 3
                continue
            texts.append((start, found.start(), True))
            self.flush(texts, parts)
            if found[2] != "message":
                if found[1]:
                    self.mask.refuse(f"This closes a <{found[2]}> that was not opened.", found.start(), len(found[0]))
                parts.append(self.part(found))
                start = position = self.position
                continue
            if not found[1]:
                self.mask.refuse("A message cannot stand inside another one.", found.start(), len(found[0]))
            self.close(found)
            return tuple(parts)

    def flush(self, texts: list[tuple[int, int, bool]], parts: list[Part]) -> None:
        """Make a text part of the stretches read so far, without the template's blanks around it."""
        start, end, _ = texts[0]
        texts[0] = (start + _blanks(self.text[start:end]), end, True)
        start, end, _ = texts[-1]
        texts[-1] = (start, max(start, end - _blanks(self.text[start:end][::-1])), True)
        text = "".join(self.mask.read(start, end, decode=decode) for start, end, decode in texts)
        texts.clear()
        if text:
            parts.append(Text(text))

    def part(self, opening: re.Match[str]) -> Part:
        kind = opening[2]
        _, closed = self.attributes(opening.start(), opening.end(), kind, ())
        start = end = self.position
        if not closed:
            closing = _TAG.search(self.text, self.position)
            if closing is None or closing[2] != kind or not closing[1]:
                self.mask.refuse(
                    f"This <{kind}> is not closed: </{kind}> is missing.", opening.start(), len(opening[0])
                )
            end = closing.start()
            self.close(closing)
        if kind == "text":
            return Text(self.mask.read(start, end))
        try:
            return image_of(self.inside(start, end))
        except ValueError as error:
            self.mask.refuse(str(error), opening.start(), len(opening[0]))

    def close(self, closing: re.Match[str]) -> None:
        end = _END_OF_TAG.match(self.text, closing.end())
        if end is None or end[1]:
            self.mask.refuse(f"The tag </{closing[2]} is not closed.", closing.start(), len(closing[0]))
        self.position = end.end()


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip())


def _decoded(text: str) -> str:
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return _NAMED[found[1]]
    number = int(found[2]) if found[2] else int(found[3], 16)
    # What XML does not know as a character stays as it is written.
    return chr(number) if 0 < number < 0xD800 or 0xE000 <= number <= 0x10FFFF else found[0]


class Prompt(str):
    """The text of a rendered prompt that remembers which of it are values.

    Its ``pieces`` are texts, each with whether it is a value: a value is data, nothing in it counts as markup. A
    template language returns one where its template may have markup, a plain string where it has none. Whatever is done
    to it as a string gives a plain string, in which nothing is markup; `map` keeps the roles. A value that is empty is
    a piece too: it parts what the template wrote before it from what it wrote after.

    >>> prompt = Prompt(
    ...     [("<message role='user'>", False), ("</message> or <b>", True), ("</message>", False)]
    ... )
    >>> prompt
    "<message role='user'></message> or <b></message>"
    >>> [(message.role, message.text) for message in prompt.messages()]
    [('user', '</message> or <b>')]
    """

    __slots__ = ("pieces",)

    pieces: tuple[tuple[str, bool], ...]

    def __new__(cls, pieces: Iterable[tuple[str, bool]]) -> Prompt:
        """Join the pieces."""
        pieces = tuple(pieces)
        prompt = super().__new__(cls, "".join(text for text, is_value in pieces))
        prompt.pieces = pieces
        return prompt

    def __getnewargs__(self) -> tuple[tuple[tuple[str, bool], ...]]:  # type: ignore[override]  # str's are its text
        return (self.pieces,)

    def messages(self, name: str = "") -> tuple[Message, ...]:
        """Return the messages for a chat service; see `portico._prompts.prompt.read_messages`.

        Errors begin with ``name``.
        """
        return read_messages(self, name)

    def map(self, change: Callable[[str], str], *, values_only: bool = False) -> Prompt:
        """Return the prompt with each piece's text changed, values and template told apart as before.

        >>> Prompt([("To ", False), ("ada@example.org", True)]).map(lambda text: text.replace("@", " at "))
        'To ada at example.org'

        ``values_only`` leaves alone what the template wrote, markup included.
        """
        return Prompt(
            (text, is_value) if values_only and not is_value else (change(text), is_value)
            for text, is_value in self.pieces
        )

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
