"""The part of the parser that reads what stands between the braces of one tag."""

from __future__ import annotations

import re

from portico import Prompt
from portico.errors import LimitExceeded, TemplateError
from portico_templates.handlebars._nodes import Expression, Literal, Path, SubExpression
from portico_templates.handlebars._numbers import number_text
from portico_templates.handlebars._scanning import Token

_DEEPEST = 64
_MOST_DIGITS = 300
_LITERALS = {"STRING", "NUMBER", "BOOLEAN", "UNDEFINED", "NULL"}
_VALUES = {*_LITERALS, "ID", "DATA", "OPEN_SEXPR"}
_SHORT = 40
_WORD = re.compile(r"[\w-]+")


def identifier(text: str) -> str:
    """Return a name without the brackets that it may be written in."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") and "\n" not in text else text


class ExpressionParser:
    """Reads expressions from tokens; the parser of templates stands on it."""

    def __init__(self, source: str, name: str, tokens: list[Token]) -> None:
        self.source = source
        self.name = name
        self._tokens = tokens
        self._index = 0
        self._depth = 0
        self.token = tokens[0]

    def advance(self) -> None:
        """Go to the next token."""
        self._index += 1
        self.token = self._tokens[self._index]

    def expect(self, wanted: str, opening: Token) -> Token:
        """Take the token that ends a tag."""
        token = self.token
        if token.name == wanted:
            self.advance()
            return token
        is_cut_off = token.name == "INVALID" and "}}" not in self.source[token.at :]
        if token.name in {"EOF", "OPEN"} or token.name.startswith("OPEN_") or is_cut_off:
            closing = {"CLOSE_RAW_BLOCK": "}}}}", "CLOSE_UNESCAPED": "}}}", "CLOSE_SEXPR": ")"}.get(wanted, "}}")
            message = f"What begins here is not closed: {closing} is missing."
            raise Prompt.fault(message, self.source, opening.at, opening.end - opening.at, name=self.name)
        if token.name == "INVALID" and token.text in "\"'[":
            raise self.wrong(f"Nothing closes this {token.text}.")
        raise self.wrong(f"{token.text[:_SHORT]!r} is not expected here.{self._advice(token)}")

    def helper_name(self) -> tuple[Path, Literal | None]:
        """Read a path, or a literal that stands for one."""
        token = self.token
        if token.name in _LITERALS:
            literal = self._literal()
            return Path((literal.original,), literal.original, 0, False, token.at, token.end), literal
        return self._path(), None

    def partial_name(self) -> Expression:
        """Read the name of a partial: a path, a literal or a call."""
        return self._value() if self.token.name in _VALUES else self._path()

    def params(self) -> list[Expression]:
        """Read the arguments that have no names."""
        found: list[Expression] = []
        while self.token.name in _VALUES and not self._is_named():
            found.append(self._value())
        return found

    def hash(self) -> dict[str, Expression]:
        """Read the arguments that have names; the first of a name holds."""
        found: dict[str, Expression] = {}
        while self._is_named():
            name = identifier(self.token.text)
            self.advance()
            self.advance()
            if self.token.name == "EQUALS":
                raise self.wrong(f"There is no ==; two values are compared by a helper: (equals {name} …).")
            if self.token.name not in _VALUES:
                raise self.wrong(f"The argument {name!r} has no value.")
            found.setdefault(name, self._value())
        return found

    def block_params(self) -> tuple[str, ...]:
        """Read ``as |first second|``."""
        opening = self.token
        self.advance()
        names: list[str] = []
        while self.token.name == "ID":
            names.append(identifier(self.token.text))
            self.advance()
        if not names:
            raise self.wrong("Between | and | stand the names of block parameters.")
        if self.token.name != "CLOSE_BLOCK_PARAMS":
            message = "The block parameters are not closed: | is missing."
            raise Prompt.fault(message, self.source, opening.at, opening.end - opening.at, name=self.name)
        self.advance()
        return tuple(names)

    def _is_named(self) -> bool:
        return self.token.name == "ID" and self._tokens[self._index + 1].name == "EQUALS"

    def _value(self) -> Expression:
        token = self.token
        if token.name in _LITERALS:
            return self._literal()
        if token.name != "OPEN_SEXPR":
            return self._path()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.too_deep(f"Calls may be at most {_DEEPEST} deep inside of each other.", token)
        self.advance()
        path, _ = self.helper_name()
        params, hash_arguments = self.params(), self.hash()
        end = self.expect("CLOSE_SEXPR", token)
        self._depth -= 1
        return SubExpression(path, params, hash_arguments, token.at, end.end)

    def _literal(self) -> Literal:
        token = self.token
        self.advance()
        value: object = None
        original = token.text
        if token.name == "STRING":
            value = token.text
        elif token.name == "BOOLEAN":
            value = token.text == "true"
        elif token.name == "NUMBER":
            if len(token.text) > _MOST_DIGITS:
                message = f"A number has at most {_MOST_DIGITS} digits."
                raise Prompt.fault(message, self.source, token.at, len(token.text), name=self.name)
            number = float(token.text) if "." in token.text else int(token.text)
            value, original = number, number_text(number)
        return Literal(token.name, value, original, token.at, token.end)

    def _path(self) -> Path:
        token = self.token
        is_data = token.name == "DATA"
        if is_data:
            self.advance()
        parts: list[str] = []
        original = "@" if is_data else ""
        depth = 0
        while True:
            segment = self.token
            if segment.name != "ID":
                raise self._wrong_segment(segment, token)
            self.advance()
            name = identifier(segment.text)
            original += name
            if name == segment.text in {"..", ".", "this"}:
                if parts:
                    message = f"Invalid path: {original!r}. {segment.text!r} may only stand at the beginning."
                    raise Prompt.fault(message, self.source, token.at, segment.end - token.at, name=self.name)
                depth += segment.text == ".."
            else:
                parts.append(name)
            if self.token.name != "SEP":
                return Path(tuple(parts), original, depth, is_data, token.at, segment.end)
            original += self.token.text
            self.advance()

    def _wrong_segment(self, segment: Token, path: Token) -> TemplateError:
        written = self.source[segment.at : segment.end]
        if segment.name == "EOF":
            message = "What begins here is not closed: }} is missing."
            return Prompt.fault(message, self.source, path.at, max(1, path.end - path.at), name=self.name)
        if segment.name == "INVALID" and written in "\"'[":
            return self.wrong(f"Nothing closes this {written}.")
        if segment.name == "NUMBER" and segment is not path:
            return self.wrong(f"An index at the end of a path is written in brackets: [{written}].")
        if segment.name in {"CLOSE", "CLOSE_UNESCAPED", "CLOSE_RAW_BLOCK"}:
            return self.wrong(f"A name is missing before {written}.")
        return self.wrong(f"A name is expected here, not {written[:_SHORT]!r}.{self._advice(segment)}")

    def _advice(self, token: Token) -> str:
        """Say what is meant, perhaps, by what is not of the language."""
        if token.text in {"<", ">"}:
            return " Numbers are compared by helpers: (lessThan a b), (greaterThan a b)."
        if token.text in {"#", "^", ">"} or (token.name == "SEP" and token.text == "/"):
            return f" It stands right after the braces: {{{{{token.text}…"
        word = _WORD.match(self.source, token.at)
        if token.name == "INVALID" and word:
            return f" After the name {word[0]!r} stands a blank, a '.' or the end of the tag; blanks part arguments."
        return ""

    def too_deep(self, message: str, token: Token) -> LimitExceeded:
        """Return the error of a token at which a bound is reached."""
        return LimitExceeded(str(Prompt.fault(message, self.source, token.at, token.end - token.at, name=self.name)))

    def wrong(self, message: str) -> TemplateError:
        """Return the error of the next token."""
        token = self.token
        return Prompt.fault(message, self.source, token.at, max(1, token.end - token.at), name=self.name)
