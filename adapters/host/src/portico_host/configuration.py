"""Read `portico.toml`, the environment and the overrides into one checked configuration."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from attrs import field as setting, frozen, validators

from portico.errors import ConfigurationError, nearest
from portico.ports import PORTS, PortInfo
from portico_host.problems import Key, Problem, SettingsInvalid, kind_of, unknown_word
from portico_host.settings import SecretSource, Structurer
from portico_host.tree import NONE, Tree, origin_of

if TYPE_CHECKING:
    from attrs import Attribute

    from portico import FunctionLabels, Policy

FILE_NAME = "portico.toml"
_MAXIMUM_BYTES = 1_048_576
NAME_PATTERN = r"[0-9A-Za-z_-]+"
"""What the name of your own table is made of."""
_NAME = re.compile(NAME_PATTERN)


_YEAR = 31_536_000.0
_SECONDS = validators.optional(validators.and_(validators.gt(0), validators.le(_YEAR)))


@frozen
class PluginChoice:
    """``[plugins]``: which installed packages are imported at all."""

    disable: tuple[str, ...] = setting(
        default=(), metadata={"doc": "Packages not to import, by entry point or distribution."}
    )
    only: tuple[str, ...] | None = setting(default=None, metadata={"doc": "The only packages to import."})


@frozen
class SecretRules:
    """``[secrets]``: where secrets may come from."""

    allow_files_inside: bool = setting(
        default=False, metadata={"doc": "Allow a secret's `file` inside the folder of the configuration."}
    )


@frozen
class LoopBudget:
    """The keys beside ``use`` in ``[planner]``: the budget and functions of a run, whichever planner it uses."""

    max_steps: int = setting(default=100, validator=validators.ge(1), metadata={"doc": "Steps that one run may run."})
    max_proposals: int = setting(
        default=20, validator=validators.ge(1), metadata={"doc": "Proposals that a planner may make."}
    )
    max_refusals: int = setting(
        default=3, validator=validators.ge(0), metadata={"doc": "Refused proposals in a row before a run is given up."}
    )
    max_seconds: float | None = setting(
        default=None, validator=_SECONDS, metadata={"doc": "Seconds that one run may take."}
    )
    step_seconds: float | None = setting(
        default=None,
        validator=_SECONDS,
        metadata={"doc": "Seconds that each attempt of a step may take, where its plan does not say."},
    )
    step_attempts: int = setting(
        default=1,
        validator=validators.ge(1),
        metadata={
            "doc": "How often a step is tried in all when it fails in a way that may pass, where its plan does not "
            "say; a function with effects is not tried again."
        },
    )
    max_items: int = setting(
        default=1_000,
        validator=validators.ge(1),
        metadata={"doc": "For how many items of lists the steps with `each` of one run may run."},
    )
    max_cost: float | None = setting(
        default=None,
        validator=validators.optional(validators.and_(validators.ge(0), validators.lt(math.inf))),
        metadata={"doc": "US dollars that the models of one run may cost; a model of unknown price is refused then."},
    )
    include: tuple[str, ...] | None = setting(
        default=None, metadata={"doc": "The only functions that a planner may use: names of functions or plugins."}
    )
    exclude: tuple[str, ...] = setting(
        default=(), metadata={"doc": "Functions that no planner may use: names of functions or plugins."}
    )
    reuse: bool = setting(
        default=False,
        metadata={"doc": "Run the plan that was saved for the same goal and functions, and save the one that answers."},
    )


def _readable(instance: object, attribute: Attribute[Any], value: Any) -> None:
    """Refuse words for labels that mean nothing."""
    from portico import FunctionLabels

    try:
        FunctionLabels.read(**{attribute.name: value})
    except ConfigurationError as error:
        # Whoever reads it finds the setting by the first word.
        words = str(error)
        raise ValueError(
            words if words.startswith(attribute.name) else f"{attribute.name} is wrong: {words}"
        ) from error


@frozen
class LabelledFunction:
    """``[policy.functions.NAME]``: what a function says of its result and parameters."""

    gives: str | Mapping[str, str] | None = setting(
        default=None,
        validator=_readable,
        metadata={
            "doc": "What the result is, or a table of it by path: `trusted`, `untrusted`, `as given`, and perhaps "
            "`readable_by(path)` after a comma."
        },
    )
    takes: Mapping[str, str] = setting(
        factory=dict,
        validator=_readable,
        metadata={
            "doc": "What parameters take, by name or path: `trusted` or `anything`, perhaps `readable_by(parameter)` "
            "or `private` after a comma, and `else refuse` at the end."
        },
    )
    reaches_out: bool = setting(
        default=False, metadata={"doc": "Whether a call sends its arguments outside, though it has no effects."}
    )

    def labels(self) -> FunctionLabels:
        """Return the labels. Raises ``ConfigurationError`` for words that mean nothing."""
        from portico import FunctionLabels

        return FunctionLabels.read(self.gives, self.takes, reaches_out=self.reaches_out)


@frozen
class PolicyRules:
    """``[policy]``: which values may reach which functions."""

    mode: Literal["off", "warn", "enforce"] | None = setting(
        default=None,
        metadata={
            "doc": "Whether nothing is looked at, flows that nothing allows are warnings, or a person must agree to "
            "them first. Default: `enforce` with labels in `[policy.functions]`, else warnings before a run."
        },
    )
    functions: Mapping[str, LabelledFunction] = setting(
        factory=dict, metadata={"doc": "Labels, by the name of a function or a pattern of names."}
    )

    def policy(self) -> Policy:
        """Return the policy of a kernel."""
        from portico import Policy

        functions = {name: each.labels() for name, each in self.functions.items()}
        mode = self.mode or ("enforce" if functions else "warn")
        return Policy(mode, functions, quiet=self.mode is None and not functions)


def default_settings(port: str, name: str) -> dict[str, Any]:
    """Return the settings of the embedded default: FAISS has its vectors in the user's cache folder."""
    if (port, name) != ("VectorStore", "faiss"):
        return {}
    from platformdirs import user_cache_path

    return {"path": user_cache_path("portico", appauthor=False) / "vectors"}


def names_what_it_uses(port: PortInfo) -> bool:
    """Tell whether a named table means its own plugin name where it has no `use`.

    ``[templates.handlebars]`` does: prompts choose a language by that name, configured or not. So does
    ``[observers.opentelemetry]``, which is active by that name.
    """
    return port.name in ("TemplateLanguage", "Observer")


def can_be_none(port: PortInfo) -> bool:
    """Tell whether a kernel can do without a port, so that ``use = "none"`` switches it off."""
    return not port.many and (port.spare or port.default is None)


def is_beside(port: PortInfo) -> bool:
    """Tell whether a port shares the table of another one, ``[functions]``.

    What stands there and is no table is the choice and the settings of this port.
    """
    return port.key != "use"


def loose(table: Any) -> Mapping[str, Any]:
    """Return what stands in a table itself, without the tables inside it."""
    return {key: value for key, value in _table(table).items() if not isinstance(value, Mapping)}


@dataclass(frozen=True, slots=True)
class Entry:
    """One service as it is configured: the plugin to use, its raw settings, and their key.

    ``name`` is the entry's own for named tables ("docs" of ``[search.docs]``), the plugin's otherwise.
    """

    port: PortInfo
    name: str
    use: str
    key: Key
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The merged configuration. Its repr shows no values, for some are secret.

    ``path`` is the file that was read, None when there was none; ``folder`` is that of the file, or the
    working directory.
    """

    path: Path | None
    folder: Path
    values: Mapping[str, Any] = field(repr=False)
    origins: Mapping[Key, str] = field(repr=False)
    plugins: PluginChoice
    secrets: SecretRules
    budget: LoopBudget
    policy: PolicyRules
    environ: Mapping[str, str] = field(repr=False)

    def use(self, port: PortInfo) -> str | None:
        """Return the plugin that is chosen for a port with one table, None when none is."""
        chosen = self.values.get(port.table, {}).get(port.key)
        return None if chosen is None or port.many or self.is_off(port) else str(chosen)

    def is_off(self, port: PortInfo) -> bool:
        """Tell whether a port is to be done without, by ``use = "none"``."""
        return can_be_none(port) and self.values.get(port.table, {}).get(port.key) == NONE

    def entries(self, port: PortInfo) -> tuple[Entry, ...]:
        """Return what is configured for a port, in the order of the file; of single ports the chosen one first."""
        table = self.values.get(port.table, {})
        if port.many:
            return tuple(
                self._make_entry(port, name, values) for name, values in table.items() if isinstance(values, Mapping)
            )
        chosen = self.use(port)
        if is_beside(port):
            return (self.single(port, chosen),) if chosen else ()
        names = [name for name, values in table.items() if isinstance(values, Mapping)]
        ordered = dict.fromkeys([*([chosen] if chosen else []), *names])
        return tuple(self.single(port, name) for name in ordered)

    def entry(self, port: PortInfo, name: str) -> Entry | None:
        """Return the entry of that name, None when it is not configured."""
        return next((entry for entry in self.entries(port) if entry.name == name), None)

    def single(self, port: PortInfo, name: str) -> Entry:
        """Return the entry of that name in a port's one table, with empty settings where there are none.

        The name is the plugin's, unless the entry names another with ``use``.
        """
        table = self.values.get(port.table, {})
        if is_beside(port):
            beside = {key: value for key, value in loose(table).items() if key != port.key}
            return Entry(port, name, name, (port.table,), beside)
        # A variable cannot hold the hyphen that a plugin's name may have.
        values = {**_table(table.get(name.replace("-", "_"))), **_table(table.get(name))}
        return self._make_entry(port, name, values)

    def place(self, key: Key) -> str:
        """Return the file or variable that a key is from; the file where it is from none."""
        return origin_of(self.origins, key) or self._file

    def structurer(self) -> Structurer:
        """Return what makes settings of raw values, with this configuration's folder and rules on secrets."""
        return Structurer(SecretSource(self.environ, self.folder, self.secrets.allow_files_inside))

    def locate(self, entry: Entry, error: SettingsInvalid) -> SettingsInvalid:
        """Return an error for an entry's settings with the whole keys, and with the place of each."""
        problems = []
        for each in error.problems:
            key = (*entry.key, *each.key)
            # Without settings the nearest origin is that of the choice, `--chat` for example, which has none.
            problems.append(replace(each, key=key, place=self.place(key) if entry.settings else self._file))
        return SettingsInvalid(problems)

    @property
    def _file(self) -> str:
        return str(self.path) if self.path else f"no {FILE_NAME}"

    def _make_entry(self, port: PortInfo, name: str, values: Mapping[str, Any]) -> Entry:
        settings = {key: value for key, value in values.items() if key != "use"}
        return Entry(port, name, str(values.get("use", name)), (port.table, name), settings)


def read_configuration(
    path: Path | str | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    problems: list[Problem] | None = None,
) -> Configuration:
    """Read ``path``, or `portico.toml` of the working directory if it is there, and what goes over it.

    No other folder is looked at. ``environ`` is the process's unless given. Raises ``SettingsInvalid`` with every
    mistake that shows without asking the plugins, and ``ConfigurationError`` for a file that is not TOML. With
    ``problems``, mistakes are added there instead.
    """
    environ = os.environ if environ is None else environ
    file = Path(path) if path is not None else Path(FILE_NAME)
    if path is None and not file.is_file():
        found, values = None, {}
    else:
        found, values = file, _read(file)
    tree = Tree(str(file))
    tree.add_file(values)
    tree.add_environment(environ)
    tree.add_overrides(overrides or {})
    folder = file.parent.absolute() if found else Path.cwd()
    check = _Shape(tree, Structurer(SecretSource({}, folder)))
    configuration = Configuration(
        found, folder, MappingProxyType(tree.values), MappingProxyType(tree.origins), *check.host_tables(), environ
    )
    check.ports()
    if problems is not None:
        problems += tree.problems
    elif tree.problems:
        raise SettingsInvalid(tree.problems)
    return configuration


def _read(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            content = stream.read(_MAXIMUM_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not a path"
        raise ConfigurationError(f"The configuration {str(file)!r} cannot be read: {reason}.") from None
    if len(content) > _MAXIMUM_BYTES:
        raise ConfigurationError(f"{file}: the file has more than {_MAXIMUM_BYTES} bytes.")
    try:
        # Some editors begin a file with a byte order mark, which TOML does not know.
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        reason = "the file is not UTF-8 text"
    except RecursionError:
        reason = "the values are nested too deeply"
    except ValueError as error:
        reason = f"not TOML: {error}"
    raise ConfigurationError(f"{file}: {reason}.")


class _Shape:
    """Checks what can be checked before any plugin is known."""

    def __init__(self, tree: Tree, structurer: Structurer) -> None:
        self.tree = tree
        self.structurer = structurer
        self._problem = tree.add_problem

    def host_tables(self) -> tuple[PluginChoice, SecretRules, LoopBudget, PolicyRules]:
        budget = {key: value for key, value in loose(self.tree.values.get("planner")).items() if key != "use"}
        return (
            self._structure(PluginChoice, self.tree.values.get("plugins", {}), ("plugins",)),
            self._structure(SecretRules, self.tree.values.get("secrets", {}), ("secrets",)),
            self._structure(LoopBudget, budget, ("planner",)),
            self._structure(PolicyRules, self.tree.values.get("policy", {}), ("policy",)),
        )

    def ports(self) -> None:
        tables = {port.table: port for port in PORTS if not is_beside(port)}
        beside = {port.table: port for port in PORTS if is_beside(port)}
        known = [*tables, "plugins", "secrets", "policy"]
        for name, values in self.tree.values.items():
            port = tables.get(name)
            if name not in known:
                self._problem((name,), unknown_word(name, known, "a table of the configuration"))
            elif port is None:
                continue
            elif not isinstance(values, Mapping):
                self._problem((name,), f"expected a table, got {kind_of(values)}.")
            elif name in beside:
                self._beside(beside[name], loose(values))
                self._many(port, {key: value for key, value in values.items() if isinstance(value, Mapping)})
            elif port.many:
                self._many(port, values)
            else:
                self._single(port, values)

    def _many(self, port: PortInfo, table: Mapping[str, Any]) -> None:
        for name, values in table.items():
            key = (port.table, name)
            if not isinstance(values, Mapping):
                self._problem(key, f"expected a table [{port.table}.NAME] with `use`, got {kind_of(values)}.")
            elif not _NAME.fullmatch(name):
                self._problem(key, "a name has letters, digits, '-' and '_' only.")
            elif "use" not in values and not names_what_it_uses(port):
                self._problem((*key, "use"), f"is missing; expected the name of a {port.noun}.")
            else:
                self._use((*key, "use"), values)

    def _beside(self, port: PortInfo, settings: Mapping[str, Any]) -> None:
        self._use((port.table, port.key), settings)
        if port.key not in settings:
            for name in settings:
                sentence = f"is a setting of a {port.noun}, and none is chosen: set `{port.key}` in [{port.table}]."
                self._problem((port.table, name), sentence)

    def _single(self, port: PortInfo, table: Mapping[str, Any]) -> None:
        self._use((port.table, "use"), table)
        for name, value in table.items():
            if name != "use" and not isinstance(value, Mapping) and port.table != "planner":
                close = "Nearest: use. " if nearest(name, ["use"]) else ""
                advice = f"Settings of a {port.noun} go into [{port.table}.{table.get('use', 'NAME')}]."
                self._problem((port.table, name), f"is not a setting here. {close}{advice}")

    def _use(self, key: Key, table: Mapping[str, Any]) -> None:
        value = table.get(key[-1], "-")
        if not isinstance(value, str) or not value:
            self._problem(key, f"expected a name, got {kind_of(value) if value != '' else 'an empty string'}.")

    def _structure(self, cls: type[Any], values: Any, key: Key) -> Any:
        try:
            return self.structurer.structure(cls, values)
        except SettingsInvalid as error:
            for each in error.problems:
                self._problem((*key, *each.key), each.cause)
            return cls()


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
