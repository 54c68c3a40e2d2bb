"""What is public changes only on purpose: the snapshot in `api` is compared with the source."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_snapshot", HERE / "api_snapshot.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["api_snapshot"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()
SNAPSHOTS: dict[Path, str] = SCRIPT.snapshots()


def message(distribution: str, before: str, after: str) -> str:
    """Return what a failing test says: the diff, what it means, and the command that accepts it."""
    pairs = difflib.unified_diff(before.splitlines(), after.splitlines(), "accepted", "now", lineterm="", n=0)
    lines = [line for line in pairs if not line.startswith("@@")]
    gone = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    meaning = (
        f"{gone} lines are gone or changed, which breaks whoever rests on them: keep the old names working, "
        "or add a fragment to changes.d that says how to change over. Where a port changed, see "
        "docs/reference/versions.md: it may need a new port version."
        if gone
        else "Lines are new only, which breaks nobody."
    )
    return "\n".join(
        [f"The public surface of {distribution} is another one:", *lines, "", meaning, f"Accept it: {SCRIPT.COMMAND}"]
    )


@pytest.mark.parametrize("file", sorted(SNAPSHOTS), ids=lambda file: file.stem)
def test_the_public_surface_is_the_one_that_was_accepted(file: Path) -> None:
    before = file.read_text("utf-8") if file.is_file() else ""
    after = SNAPSHOTS[file]
    if before != after:
        pytest.fail(message(file.stem, before, after), pytrace=False)


def test_no_snapshot_is_left_of_a_distribution_that_is_gone() -> None:
    assert set(SCRIPT.FOLDER.glob("*.txt")) == set(SNAPSHOTS), f"run {SCRIPT.COMMAND}"


def test_a_line_that_is_gone_is_said_to_break_and_a_new_one_is_not() -> None:
    said = message("portico-acme", "# a\ndef a.f()\ndef a.g()\n", "# a\ndef a.f(x: int)\ndef a.g()\n")
    assert "-def a.f()" in said
    assert "+def a.f(x: int)" in said
    assert "a.g" not in said
    assert "1 lines are gone or changed" in said
    assert "changes.d" in said
    assert "port version" in said
    assert said.endswith("Accept it: python tests/architecture/api_snapshot.py")
    assert "breaks nobody" in message("portico-acme", "# a\n", "# a\ndef a.f()\n")


Surface = Callable[..., list[str]]


@pytest.fixture
def surface(tmp_path: Path) -> Surface:
    """Return what gives the lines of a package made of these modules."""

    def of(**sources: str) -> list[str]:
        for name, source in sources.items():
            file = (
                tmp_path / "acme" / f"{name.replace('__', '/')}.py" if name != "init" else tmp_path / "acme/__init__.py"
            )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(source), "utf-8")
        return SCRIPT.surface(tmp_path).splitlines()

    return of


def test_a_function_is_told_with_its_whole_signature(surface: Surface) -> None:
    lines = surface(
        shop="""
        __all__ = ["buy", "wait", "walk"]
        def buy(what: str, /, count: int = 1, *, gift: bool = False, **more: object) -> "Receipt": ...
        async def wait(seconds: float = 0.5) -> None: ...
        async def walk() -> AsyncIterator[int]:
            yield 1
        def hidden() -> None: ...
        """
    )
    assert lines == [
        "# acme.shop",
        "def acme.shop.buy(what: str, /, count: int=1, *, gift: bool=False, **more: object) -> 'Receipt'",
        "async def acme.shop.wait(seconds: float=0.5) -> None",
        "def acme.shop.walk() -> AsyncIterator[int]",
    ]


def test_the_fields_of_a_dataclass_keep_their_order_and_lose_their_documentation(surface: Surface) -> None:
    lines = surface(
        shop="""
        __all__ = ["Basket", "Settings"]
        @dataclass(frozen=True)
        class Basket(Bag):
            what: str
            count: int = field(default=1, metadata={"doc": "How many."})
            _secret: int = 0
        @frozen
        class Settings:
            zone: str = field(validator=instance_of(str))
            area: tuple[str, ...] = field(factory=tuple, metadata={"doc": "Where."})
        """
    )
    assert lines == [
        "# acme.shop",
        "@dataclass(frozen=True) class acme.shop.Basket(Bag)",
        "acme.shop.Basket.what: str",
        "acme.shop.Basket.count: int = 1",
        "@frozen class acme.shop.Settings",
        "acme.shop.Settings.zone: str = field()",
        "acme.shop.Settings.area: tuple[str, ...] = field(factory=tuple)",
    ]


def test_a_class_is_told_with_what_its_private_base_gives_it(surface: Surface) -> None:
    lines = surface(
        _inner="""
        class _Base:
            def shared(self) -> int: ...
            def own(self) -> str: ...
        """,
        shop="""
        from acme._inner import _Base
        __all__ = ["Shop"]
        class Shop(_Base):
            name: str
            def __init__(self, name: str) -> None:
                self.name = name
                self.open = True
                self._till = 0
            def own(self) -> int: ...
            def __repr__(self) -> str: ...
            @property
            def size(self) -> int: ...
            @classmethod
            def of(cls, text: str) -> Shop: ...
            @staticmethod
            def none(first: int) -> None: ...
            def _hidden(self) -> None: ...
        """,
    )
    assert lines == [
        "# acme.shop",
        "class acme.shop.Shop",
        "acme.shop.Shop.name: str",
        "@classmethod def acme.shop.Shop.of(text: str) -> Shop",
        "@property def acme.shop.Shop.size() -> int",
        "@staticmethod def acme.shop.Shop.none(first: int) -> None",
        "acme.shop.Shop.open",
        "def acme.shop.Shop.__init__(name: str) -> None",
        "def acme.shop.Shop.own() -> int",
        "def acme.shop.Shop.shared() -> int",
    ]


def test_protocols_typed_dictionaries_and_enumerations_are_told_with_their_members(surface: Surface) -> None:
    lines = surface(
        shop="""
        __all__ = ["Kind", "Options", "Seller"]
        class Seller(Protocol):
            name: str
            async def sell(self, what: str) -> bool: ...
        class Options(TypedDict, total=False):
            top: int
        class Kind(Enum):
            SMALL = "s"
            LARGE = "l"
        """
    )
    assert lines == [
        "# acme.shop",
        "class acme.shop.Kind(Enum)",
        "acme.shop.Kind.SMALL = 's'",
        "acme.shop.Kind.LARGE = 'l'",
        "class acme.shop.Options(TypedDict, total=False)",
        "acme.shop.Options.top: int",
        "class acme.shop.Seller(Protocol)",
        "acme.shop.Seller.name: str",
        "async def acme.shop.Seller.sell(what: str) -> bool",
    ]


def test_overloads_are_told_and_not_what_is_behind_them(surface: Surface) -> None:
    lines = surface(
        shop="""
        __all__ = ["buy"]
        @overload
        def buy(what: str) -> int: ...
        @overload
        def buy(what: bytes) -> str: ...
        def buy(what): ...
        """
    )
    assert lines[1:] == [
        "@overload def acme.shop.buy(what: str) -> int",
        "@overload def acme.shop.buy(what: bytes) -> str",
    ]


def test_constants_names_from_elsewhere_and_long_tables_are_told(surface: Surface) -> None:
    lines = surface(
        init="""
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from acme.shop import LIMIT as MOST
        __all__ = ["MOST"]
        """,
        shop=f"""
        __all__ = ["LIMIT", "Names", "TABLE", "TEXT"]
        LIMIT: int = 5
        TEXT = {"x" * 200!r}
        Names: TypeAlias = Literal[{", ".join(repr(letter * 9) for letter in "abcdefghijkl")}]
        TABLE = ({"Entry('a', 1)," * 12})
        """,
    )
    assert lines[:2] == ["# acme", "acme.MOST = acme.shop.LIMIT"]
    assert "acme.shop.LIMIT: int = 5" in lines
    assert "acme.shop.TEXT = …" in lines
    assert any(line.endswith("'lllllllll']") for line in lines), "the whole of a type is told"
    assert "acme.shop.TABLE has Entry('a', 1)" in lines


def test_modules_that_are_private_and_names_outside_the_surface_are_not_told(surface: Surface) -> None:
    assert surface(_inner="__all__ = ['f']\ndef f(): ...", shop="def g(): ...") == []


def test_the_versions_of_the_ports_are_in_the_snapshot() -> None:
    text = SNAPSHOTS[SCRIPT.FOLDER / "portico-core.txt"]
    assert "portico.ports.PORTS has PortInfo('ChatService', 'chat service', 1, " in text
