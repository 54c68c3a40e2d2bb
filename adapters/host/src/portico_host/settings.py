"""Structure raw values of the configuration into settings classes, strictly, and report every mistake at once."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from cattrs import ClassValidationError, Converter
from cattrs.errors import AttributeValidationNote, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn

from portico.plugins import Secret
from portico_host.fields import bare, holds_secret, is_settings_class, options_of, settings_fields, union_members
from portico_host.problems import Key, Problem, SettingsInvalid, kind_of, show, unknown_word
from portico_host.tree import Given, parse

_A_SECRET = 'a secret: { env = "VARIABLE" } or { file = "PATH" }'  # noqa: S105 - words for people
_LARGEST_SECRET = 65_536
_SHORTEST_SCRUBBED = 6
ARRAYS: Mapping[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    Sequence: tuple,
    Iterable: tuple,
    Set: frozenset,
}
TABLES = (dict, Mapping, MutableMapping)
_SCALARS: Mapping[Any, str] = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
_EXPECTED: Mapping[Any, str] = {**_SCALARS, Path: "a path", Secret: _A_SECRET, Any: "any value"}


@dataclass(slots=True)
class SecretSource:
    """Makes `Secret`s, and remembers their values so that no message repeats one by accident."""

    environ: Mapping[str, str] = field(repr=False)
    folder: Path
    allow_files_inside: bool = False
    _values: set[str] = field(default_factory=set, repr=False)

    def make(self, value: Any) -> Secret:
        """Return the secret that a raw value stands for. Raises `SettingsInvalid`, which never holds the value."""
        if isinstance(value, Secret):
            secret = value
        elif isinstance(value, str) and value:
            secret = Secret(str(value), origin=value.origin if isinstance(value, Given) else "literal")
        elif isinstance(value, Mapping):
            secret = self._from_table(value)
        else:
            raise SettingsInvalid.of(_A_SECRET, kind_of(value) if value != "" else "an empty string")
        self._values.add(secret.reveal())
        return secret

    def scrub(self, text: str) -> str:
        """Replace any value of at least six characters that this source made; shorter ones are parts of words."""
        return Secret.redact(text, [Secret(value) for value in self._values if len(value) >= _SHORTEST_SCRUBBED])

    def _from_table(self, table: Mapping[str, Any]) -> Secret:
        ((key, value),) = table.items() if len(table) == 1 else ((None, None),)
        if key not in ("env", "file") or not isinstance(value, str) or not value:
            names = ", ".join(repr(name) for name in table)
            raise SettingsInvalid.of(_A_SECRET, f"a table with {names}" if names else "an empty table")
        return self._from_variable(value) if key == "env" else self._from_file(value)

    def _from_variable(self, name: str) -> Secret:
        value = self.environ.get(name)
        if not value:
            state = "empty" if value == "" else "not set"
            cause = f"the environment variable {name} is {state}."
            raise SettingsInvalid([Problem(cause, f"Run `export {name}=…` first.")])
        return Secret(value, origin=f"env {name}")

    def _from_file(self, name: str) -> Secret:
        try:
            # The override of a command line is relative to the working directory.
            path = ((Path.cwd() if isinstance(name, Given) else self.folder) / Path(name).expanduser()).resolve()
            if path.is_relative_to(self.folder.resolve()) and not self.allow_files_inside:
                cause = f"the secret's file {path} lies inside the configuration's folder, which may get published."
                mend = "Move it out, or set allow_files_inside = true in [secrets]."
                raise SettingsInvalid([Problem(cause, mend)])
            with path.open("rb") as stream:
                content = stream.read(_LARGEST_SECRET + 1)
            text = content.decode().rstrip("\r\n")
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text, or its name is not a path"
        else:
            if text and len(content) <= _LARGEST_SECRET:
                return Secret(text, origin=f"file {name}")
            reason = "it is empty" if not text else f"it has more than {_LARGEST_SECRET} bytes"
        cause = f"the secret's file {name!r} cannot be read: {reason}."
        raise SettingsInvalid([Problem(cause, "Write the secret into it, or correct its path.")])


def describe_type(hint: Any) -> str:
    """Say what a setting of this type takes."""
    hint = bare(hint)
    members = union_members(hint)
    if members is not None:
        return " or ".join(dict.fromkeys(describe_type(each) for each in members if each is not type(None)))
    options = options_of(hint)
    if options is not None:
        return f"one of {', '.join(str(raw).lower() if isinstance(raw, bool) else repr(raw) for raw, _ in options)}"
    if _kind(hint) in ARRAYS:
        inner = [argument for argument in typing.get_args(hint) if argument is not Ellipsis]
        return f"an array, each {describe_type(inner[0])}" if len(inner) == 1 else "an array"
    return _EXPECTED.get(hint, "a table")


class Structurer:
    """Structure raw values with cattrs, made strict.

    An integer is not a boolean, a number is not cut to an integer, a string is a string, an unknown key is a
    mistake. Relative paths of the file are relative to the folder of ``secrets``; those of the environment and of
    overrides to the working directory.
    """

    def __init__(self, secrets: SecretSource) -> None:
        self.secrets = secrets
        self._converter = Converter(structure_fallback_factory=lambda _: _refuse)
        for kind in (*_SCALARS, Path, Secret):
            self._converter.register_structure_hook(kind, self._scalar)
        self._converter.register_structure_hook(bytes, _refuse)
        register = self._converter.register_structure_hook_factory
        register(lambda hint: hint is Any, lambda _: lambda value, _: _plain(value))
        register(lambda hint: options_of(hint) is not None, lambda _: _choose)
        register(lambda hint: _kind(hint) in ARRAYS, lambda _: self._array)
        register(lambda hint: _kind(hint) in TABLES, lambda _: self._table)
        register(is_settings_class, self._class)
        register(lambda hint: union_members(hint) is not None, lambda _: self._union)
        register(lambda hint: bare(hint) is not hint, self._bare)

    def structure(self, cls: type[Any], values: Mapping[str, Any], beside: Iterable[str] = ()) -> Any:
        """Return an instance of ``cls``; ``beside`` are keys that may stand beside its own, for messages.

        Raises `SettingsInvalid` with every problem; their keys begin in ``values``. It carries no secret, nor the
        original error that might.
        """
        try:
            return self._converter.structure(values, cls)
        except Exception as error:  # noqa: BLE001 - validators of other packages raise what they like
            problems = list(_problems(error, beside=beside))
        raise SettingsInvalid([replace(each, cause=self.secrets.scrub(each.cause)) for each in problems])

    def _scalar(self, value: Any, hint: Any) -> Any:
        if options_of(hint) is not None:  # cattrs takes an ``IntEnum`` for an integer
            return _choose(value, hint)
        if hint is Secret:
            return self.secrets.make(value)
        if hint is Path:
            return self._path(value)
        read = value if hint is str else parse(value)
        fitting = isinstance(read, int | float) if hint is float else isinstance(read, hint)
        if not fitting or (isinstance(read, bool) and hint is not bool):
            raise SettingsInvalid.of(_SCALARS[hint], show(value))
        return hint(read)

    def _bare(self, hint: Any) -> Callable[[Any, Any], Any]:
        return lambda value, _: self._converter.structure(value, bare(hint))

    def _path(self, value: Any) -> Path:
        if isinstance(value, Path):
            return value
        if not isinstance(value, str) or not value or "\0" in value:
            raise SettingsInvalid.of("a path", show(value))
        return (Path.cwd() if isinstance(value, Given) else self.secrets.folder) / Path(str(value)).expanduser()

    def _array(self, value: Any, hint: Any) -> Any:
        read = parse(value)
        if not isinstance(read, list | tuple):
            raise SettingsInvalid.of(describe_type(hint), kind_of(value))
        hints = [argument for argument in typing.get_args(hint) if argument is not Ellipsis] or [Any]
        if len(hints) > 1 and len(hints) != len(read):
            raise SettingsInvalid.of(f"an array of {len(hints)} elements", f"one of {len(read)}")
        each = hints if len(hints) > 1 else hints * len(read)
        parts = ((str(index), each[index], part) for index, part in enumerate(read))
        return ARRAYS[_kind(hint)](self._each(parts).values())

    def _table(self, value: Any, hint: Any) -> dict[str, Any]:
        read = parse(value)
        if not isinstance(read, Mapping):
            raise SettingsInvalid.of(describe_type(hint), kind_of(value))
        inner = (typing.get_args(hint) or (str, Any))[1]
        return self._each((str(key), inner, part) for key, part in read.items())

    def _each(self, parts: Iterable[tuple[str, Any, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        problems: list[Problem] = []
        for key, hint, value in parts:
            try:
                made[key] = self._converter.structure(value, hint)
            except Exception as error:  # noqa: BLE001 - every problem is collected
                problems += _problems(error, (key,))
        if problems:
            raise SettingsInvalid(problems)
        return made

    def _class(self, cls: Any) -> Callable[[Any, Any], Any]:
        make = make_dict_structure_fn(
            cls,
            self._converter,
            _cattrs_forbid_extra_keys=True,
            _cattrs_use_alias=True,
            _cattrs_detailed_validation=True,
        )

        def structure(value: Any, _: Any) -> Any:
            read = parse(value)
            if not isinstance(read, Mapping):
                raise SettingsInvalid.of("a table", kind_of(value))
            return make(read, cls)

        return structure

    def _union(self, value: Any, hint: Any) -> Any:
        members = union_members(hint) or ()
        some = [member for member in members if member is not type(None)]
        if {*some} == {Path, str} and isinstance(value, str):  # a file, or the text itself
            return str(value) if "{{" in value or "\n" in value else self._path(value)
        if value is None and len(some) < len(members):
            return None
        if len(some) == 1:
            return self._converter.structure(value, some[0])
        if isinstance(value, Given) and str in some:
            return str(value)
        for member in some:
            try:
                return self._converter.structure(value, member)
            except Exception:  # noqa: BLE001, S112 - the next alternative may fit
                continue
        tables = [member for member in some if is_settings_class(member) or _kind(member) in TABLES]
        if len(tables) == 1 and isinstance(parse(value), Mapping):
            # A table is meant: say what is wrong inside of it.
            return self._converter.structure(value, tables[0])
        raise SettingsInvalid.of(describe_type(hint), kind_of(value) if holds_secret(hint) else show(value))


def _kind(hint: Any) -> Any:
    kind = typing.get_origin(hint) or hint
    return kind if isinstance(kind, type) else None


def _plain(value: Any) -> Any:
    """Return a value without the marks of where it came from."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, str) else value


def _choose(value: Any, hint: Any) -> Any:
    options = options_of(hint) or ()
    for candidate in (value.value if isinstance(value, Enum) else _plain(value), _plain(parse(value))):
        for raw, option in options:
            if type(raw) is type(candidate) and raw == candidate:
                return option
    raise SettingsInvalid.of(describe_type(hint), show(value))


def _refuse(_: Any, hint: Any) -> Any:
    raise SettingsInvalid([Problem(f"cannot be set: no file has values of the type {hint!r}.")])


def _problems(error: BaseException, key: Key = (), beside: Iterable[str] = ()) -> Iterator[Problem]:
    """Yield every problem in what cattrs, a validator or one of the readers above raised."""
    if isinstance(error, SettingsInvalid):
        for each in error.problems:
            yield replace(each, key=(*key, *each.key))
    elif isinstance(error, ClassValidationError):
        fields = {member.key: member for member in settings_fields(error.cl)}
        for part in error.exceptions:
            notes = [note.name for note in getattr(part, "__notes__", ()) if isinstance(note, AttributeValidationNote)]
            name = next((key for key, member in fields.items() if member.name in notes), None)
            if isinstance(part, ForbiddenExtraKeysError):
                for extra in sorted(map(str, part.extra_fields)):
                    yield Problem(unknown_word(extra, [*fields, *beside], "a setting here"), key=(*key, extra))
            elif name and isinstance(part, KeyError):
                about = f" ({fields[name].doc.rstrip('.')})" if fields[name].doc else ""
                yield Problem(f"is missing; expected {describe_type(fields[name].hint)}{about}.", key=(*key, name))
            elif name:
                yield from _problems(part, (*key, name))
            else:
                for each in _problems(part, key):
                    # A validator runs when all fields are there; it begins its sentence with the field.
                    first = each.cause.partition(" ")[0].strip("'\"`")
                    yield replace(each, key=(*key, first)) if first in fields and each.key == key else each
    else:
        # attrs' own validators put the offending value behind the sentence, as a further argument.
        text = error.args[0] if error.args and isinstance(error.args[0], str) else type(error).__name__
        yield Problem(text if text.endswith((".", "!", "?")) else f"{text}.", key=key)
