"""The rules that the design states for the Semantic Kernel language, each through a kernel; their edges are beside."""

from __future__ import annotations

import pytest

from portico import Kernel, function
from portico.errors import FunctionNotFound, TemplateError


class Tools:
    @function
    def echo(self, input: str, second: str = "-") -> str:
        return f"({input}|{second})"


@pytest.fixture
def kernel() -> Kernel:
    kernel = Kernel()
    kernel.add_plugin(Tools(), "tools")
    return kernel


async def refused(kernel: Kernel, prompt: str, **variables: object) -> TemplateError:
    with pytest.raises(TemplateError) as raised:
        await kernel.render_prompt(prompt, variables)
    return raised.value


async def test_names_are_ascii_letters_digits_and_underscores(kernel: Kernel) -> None:
    assert await kernel.render_prompt("{{$0}}{{$_}}{{$aZ_09}}", {"0": "a", "_": "b", "aZ_09": "c"}) == "abc"
    for name in ("a-b", "é", "a.b", "²", "a b"):
        await refused(kernel, f"{{{{${name}}}}}", **{name: "x"})


async def test_a_block_is_a_variable_a_value_or_a_call(kernel: Kernel) -> None:
    prompt = """{{$a}} {{'b'}} {{"c"}} {{tools.echo}} {{echo 'd'}} {{tools.echo $a second="e"}}"""
    assert await kernel.render_prompt(prompt, {"a": "A", "input": "I"}) == "A b c (I|-) (d|-) (A|e)"


async def test_the_value_by_place_goes_to_the_first_parameter(kernel: Kernel) -> None:
    assert await kernel.render_prompt("{{tools.echo 'x' second='y'}}") == "(x|y)"


async def test_a_leading_named_argument_is_an_error(kernel: Kernel) -> None:
    error = await refused(kernel, "A {{input='x' tools.echo}}")
    assert (error.line, error.column) == (1, 5)
    assert "A block holds a $variable" in str(error)


async def test_an_argument_by_place_after_a_named_one_is_an_error(kernel: Kernel) -> None:
    assert "Only the first argument" in str(await refused(kernel, "{{tools.echo second='x' 'y'}}"))


@pytest.mark.parametrize(
    ("written", "value"),
    [(r"'\''", "'"), (r"'\"'", '"'), (r"'\\'", "\\"), (r'"\""', '"'), (r"'C:\new'", r"C:\new")],
)  # fmt: skip
async def test_a_backslash_escapes_quotes_and_backslashes_only(kernel: Kernel, written: str, value: str) -> None:
    assert await kernel.render_prompt(f"{{{{{written}}}}}") == value
    assert await kernel.render_prompt(f"{{{{tools.echo {written}}}}}") == f"({value}|-)"


@pytest.mark.parametrize("prompt", ["{{'x}}", "{{tools.echo 'x}}", '{{tools.echo second="x}}', "{{'x\\'}} {{$a}}"])
async def test_a_quote_that_is_not_closed_makes_its_block_text(kernel: Kernel, prompt: str) -> None:
    assert await kernel.render_prompt(prompt, {"a": "A"}) == prompt


@pytest.mark.parametrize("prompt", ["{{}}", "{{ }}", "a {{}} b {{  }} c"])
async def test_an_empty_block_is_text(kernel: Kernel, prompt: str) -> None:
    assert await kernel.render_prompt(prompt) == prompt


async def test_a_missing_variable_is_empty(kernel: Kernel) -> None:
    assert await kernel.render_prompt("<{{$a}}> {{tools.echo $a second=$b}}", {"b": None}) == "<> (|-)"


@pytest.mark.parametrize("call", ["nope", "tools.nope 'x'", "nope.echo", "tools.echo.x"])
async def test_an_unknown_function_is_an_error_that_shows_it(kernel: Kernel, call: str) -> None:
    error = await refused(kernel, f"One.\nTwo {{{{ {call} }}}}.")
    assert (error.line, error.column) == (2, 8)
    message, shown, mark = str(error).split("\n")
    assert message.startswith("prompt, line 2, column 8: ")
    assert shown[mark.index("^") :].startswith(call), "the mark is under the offending text"
    assert isinstance(error.__cause__, FunctionNotFound | None)


async def test_input_is_there_by_default(kernel: Kernel) -> None:
    assert await kernel.render_prompt("<{{$input}}>") == "<>"
    assert await kernel.render_prompt("<{{$input}}> {{tools.echo}}", {"input": "x"}) == "<x> (x|-)"
    assert await kernel.render_prompt("{{tools.echo $input}} {{tools.echo input=$input}}") == "(|-) (|-)"
