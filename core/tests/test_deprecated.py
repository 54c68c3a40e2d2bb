"""A name that is on its way out works, and warns where it is used; nothing else pays for it.

Nothing is deprecated yet, so these tests deprecate names of their own.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest

from portico.deprecated import NAMES, PARAMETERS, Deprecation, attribute_of, renamed_parameters

HERE = Path(__file__).name
RENAMED = {"old_shop.Basket": Deprecation("old_shop.Cart", since="0.4", goes="1.0")}
SAID = "old_shop.Basket is deprecated since portico-core 0.4 and goes in 1.0. Use old_shop.Cart."


@pytest.fixture
def shop() -> Iterator[types.ModuleType]:
    """A module that had the class Basket, which is called Cart now."""
    module = types.ModuleType("old_shop")
    module.Cart = type("Cart", (), {})
    module.__getattr__ = attribute_of("old_shop", names=RENAMED)
    sys.modules["old_shop"] = module
    yield module
    del sys.modules["old_shop"]


def line_after(name: str) -> int:
    """Return the line that follows a comment of this file."""
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == f"# {name}") + 1


def test_a_deprecated_name_is_what_replaces_it_and_warns_where_it_is_used(shop: types.ModuleType) -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated since portico-core 0") as caught:
        # an attribute
        found = shop.Basket
    assert found is shop.Cart
    assert [str(warning.message) for warning in caught] == [SAID]
    assert (Path(caught[0].filename).name, caught[0].lineno) == (HERE, line_after("an attribute"))


def test_importing_a_deprecated_name_warns_at_the_import(shop: types.ModuleType) -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated since portico-core 0") as caught:
        # an import
        from old_shop import Basket
    assert Basket is shop.Cart
    assert {(Path(warning.filename).name, warning.lineno) for warning in caught} == {(HERE, line_after("an import"))}


def test_importing_from_a_package_warns_at_the_import_too(shop: types.ModuleType) -> None:
    shop.__path__ = []  # a package: the import system asks for its names before the statement does
    with pytest.warns(DeprecationWarning, match="is deprecated since portico-core 0") as caught:
        # an import from a package
        from old_shop import Basket
    assert Basket is shop.Cart
    places = {(Path(warning.filename).name, warning.lineno) for warning in caught}
    assert places == {(HERE, line_after("an import from a package"))}


def test_other_names_of_the_module_warn_of_nothing(shop: types.ModuleType) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert shop.Cart
        assert not hasattr(shop, "Till")
        with pytest.raises(AttributeError, match="module 'old_shop' has no attribute 'Till'"):
            _ = shop.Till


def test_a_module_that_imports_its_names_late_goes_on_doing_so(shop: types.ModuleType) -> None:
    def late(name: str) -> object:
        return "opened" if name == "Till" else attribute_of("old_shop", depth=1, names=RENAMED)(name)

    shop.__getattr__ = late
    assert shop.Till == "opened"
    with pytest.warns(DeprecationWarning, match="is deprecated since portico-core 0") as caught:
        # a late attribute
        assert shop.Basket is shop.Cart
    assert (Path(caught[0].filename).name, caught[0].lineno) == (HERE, line_after("a late attribute"))
    with pytest.raises(AttributeError, match="module 'old_shop' has no attribute 'Purse'"):
        _ = shop.Purse


def test_a_name_may_have_moved_to_another_module(shop: types.ModuleType) -> None:
    moved = {"old_shop.Purse": Deprecation("decimal.Decimal", since="0.4", goes="1.0")}
    shop.__getattr__ = attribute_of("old_shop", names=moved)
    import decimal

    with pytest.warns(DeprecationWarning, match=r"Use decimal\.Decimal\."):
        assert shop.Purse is decimal.Decimal


PAID = {
    ("shop.pay", "amount"): Deprecation("price", since="0.4", goes="1.0"),
    ("shop.pay", "tip"): Deprecation("extra", since="0.5", goes="1.0"),
    ("shop.other", "price"): Deprecation("amount", since="0.5", goes="1.0"),
}


@renamed_parameters("shop.pay", parameters=PAID)
def pay(price: int, *, extra: int = 0) -> int:
    """Pay."""
    return price + extra


@renamed_parameters("shop.pay", parameters=PAID)
async def pay_later(price: int, *, extra: int = 0) -> int:
    """Pay later."""
    return price + extra


def test_a_parameter_may_be_given_by_its_old_name_which_warns_who_calls() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated since portico-core 0") as caught:
        # a call
        paid = pay(amount=3, tip=2)
    assert paid == 5
    assert sorted(str(warning.message) for warning in caught) == [
        "The parameter 'amount' of shop.pay is deprecated since portico-core 0.4 and goes in 1.0. Use price.",
        "The parameter 'tip' of shop.pay is deprecated since portico-core 0.5 and goes in 1.0. Use extra.",
    ]
    assert {(Path(warning.filename).name, warning.lineno) for warning in caught} == {(HERE, line_after("a call"))}


async def test_who_calls_a_coroutine_function_is_warned_not_the_event_loop() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated since portico-core 0") as caught:
        # a call without waiting
        waiting = pay_later(amount=3)
    assert caught[0].lineno == line_after("a call without waiting")
    assert await waiting == 3
    if sys.version_info >= (3, 12):
        assert inspect.iscoroutinefunction(pay_later)


def test_new_names_and_positions_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pay(1, extra=2) == pay(price=1, extra=2) == 3
    assert list(inspect.signature(pay).parameters) == ["price", "extra"], "the signature is the new one"


@pytest.mark.parametrize("arguments", [{"price": 1, "amount": 2}, {"amount": 2, "price": 1}])
def test_the_old_and_the_new_name_together_are_an_error(arguments: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="got 'amount' and 'price', which are the same parameter"):
        pay(**arguments)


def test_a_function_without_deprecated_parameters_is_left_as_it_is() -> None:
    def plain(price: int) -> int:
        return price

    assert renamed_parameters("shop.plain", parameters=PAID)(plain) is plain


@pytest.mark.parametrize(("since", "goes"), [("0.4", "0.4"), ("1.0", "0.9"), ("0.10", "0.9")])
def test_a_name_goes_later_than_it_is_deprecated(since: str, goes: str) -> None:
    with pytest.raises(ValueError, match="must be later"):
        Deprecation("portico.New", since=since, goes=goes)


def check_name(old: str, found: Deprecation) -> None:
    """See that an entry of `NAMES` works: the old name is what replaces it, and warns."""
    module, _, attribute = old.rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"^{re.escape(old)} is deprecated"):
        assert getattr(import_module(module), attribute) is resolve_name(found.new)


def check_parameter(owner: str, old: str, found: Deprecation) -> None:
    """See that an entry of `PARAMETERS` works: the function takes the new name, and knows the old one as the same."""
    function = resolve_name(owner)
    assert found.new in inspect.signature(function).parameters, f"{owner} has no parameter {found.new}"
    with pytest.raises(TypeError, match=f"{old!r} and {found.new!r}, which are the same parameter"):
        function(**{old: None, found.new: None})


def test_each_entry_of_the_tables_works() -> None:
    for old, found in NAMES.items():
        check_name(old, found)
    for (owner, old), found in PARAMETERS.items():
        check_parameter(owner, old, found)


def test_an_entry_alone_does_nothing_and_is_noticed(shop: types.ModuleType) -> None:
    check_name("old_shop.Basket", RENAMED["old_shop.Basket"])
    shop.pay = pay
    shop.Till = type("Till", (), {"pay": staticmethod(pay)})
    for owner in ("old_shop.pay", "old_shop.Till.pay"):
        check_parameter(owner, "amount", PAID["shop.pay", "amount"])

    del shop.__getattr__  # the module does not ask for the deprecated names
    with pytest.raises(pytest.fail.Exception, match="DID NOT WARN"):
        check_name("old_shop.Basket", RENAMED["old_shop.Basket"])
    shop.pay = pay.__wrapped__  # and the function not for the parameters
    with pytest.raises(AssertionError, match="unexpected keyword argument"):
        check_parameter("old_shop.pay", "amount", PAID["shop.pay", "amount"])
    with pytest.raises(AssertionError, match="no parameter cost"):
        check_parameter("old_shop.pay", "amount", Deprecation("cost", since="0.4", goes="1.0"))


def test_importing_portico_does_not_read_the_table() -> None:
    program = "import sys, portico, portico.registration, portico.errors; print('portico.deprecated' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False", "nothing is deprecated there, so nothing need be imported"
