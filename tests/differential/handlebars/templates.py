"""Random templates and data for them, most of which render."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

PATHS = st.sampled_from(
    [
        "a",
        "b",
        "c",
        "a.b",
        "b.c",
        "c.a",
        "../a",
        "../b.c",
        "../../a",
        "this",
        ".",
        "this.a",
        "./b",
        "[a]",
        "b.[0]",
        "c.length",
        "@index",
        "@key",
        "@first",
        "@last",
        "@root.a",
        "@../index",
        "@root",
        "x",
        "y",
        "nothing",
    ]
)
LITERALS = st.sampled_from(['"t"', "'<'", '""', "0", "1", "-2.5", "true", "false", "null", "undefined"])
TEXTS = st.sampled_from(["x", " ", "\n", "  \n", "\n  ", "<i>", "a\nb", "\\", "{ ", "\t\n\n", "é&"])
TILDE = st.sampled_from(["", "", "", "~"])
HASH_NAMES = st.sampled_from(["a", "k", "x"])
BLOCKS = st.sampled_from(["if", "unless", "each", "with", "bold", "wrap", "a", "b.c", "this", "*inline", ">p", ">q"])
CALLING = [
    "[{{> @partial-block}}]",
    "{{k}}\n{{> p}}",
    "q",
    "{{@../index}}{{#each a}}{{> @partial-block this}}{{/each}}",
]
CHAINED = st.sampled_from(["if", "if", "unless", "with", "each"])
PARAMETERS = st.sampled_from(["", "", "", " as |x|", " as |x y|", " as |a|"])


def values() -> st.SearchStrategy[Any]:
    """Give data: anything that JSON has, with the keys that the templates know."""
    plain = st.one_of(
        st.none(), st.booleans(), st.sampled_from([0, 1, -3, 2.5, 1000000]), st.sampled_from(["", "v", "<b>", "it's"])
    )
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "c", "x"]), inner, max_size=3)
        ),
        max_leaves=6,
    )


def arguments() -> st.SearchStrategy[str]:
    """Give one argument of a helper: a path, a literal, or a subexpression."""
    return st.recursive(
        PATHS | LITERALS,
        lambda inner: st.one_of(
            st.builds("(upper {})".format, inner),
            st.builds("(lookup {} {})".format, inner, inner),
            st.builds("(list {} {})".format, inner, inner),
        ),
        max_leaves=3,
    )


@st.composite
def tags(draw: st.DrawFn) -> str:
    """Give a tag that is no block."""
    one = draw(arguments())
    head = draw(
        st.one_of(
            PATHS,
            st.just(f"upper {one}"),
            st.just(f"list {one} {draw(arguments())}"),
            st.builds("options {} {}={}".format, arguments(), HASH_NAMES, PATHS | LITERALS),
            st.just(f"lookup {draw(PATHS)} {one}"),
            st.sampled_from(["! note ", "!-- {{x}} --", "> p", "> q", "> p a", "> q b k=1", "> r", "> r x=a"]),
            st.sampled_from(["> (lookup . 'n')", "> @partial-block", "> [p]", "> 'q' this", "options a=1 a=b"]),
        )
    )
    left, right = draw(TILDE), draw(TILDE)
    if head[0] not in "!>" and draw(st.integers(0, 4)) == 0:
        return f"{{{{{left}{{{head}}}{right}}}}}"
    return f"{{{{{left}{head}{right}}}}}"


@st.composite
def blocks(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    """Give a block, with an ``else`` now and then."""
    tilde: Callable[[], str] = lambda: draw(TILDE)  # noqa: E731 - each place draws its own
    name = draw(BLOCKS)
    body = draw(inner)
    if name == "*inline":
        partial = draw(st.sampled_from(["p", "r"]))
        return f'{{{{{tilde()}#*inline "{partial}"{tilde()}}}}}{body}{{{{{tilde()}/inline{tilde()}}}}}'
    if name[0] == ">":
        return f"{{{{{tilde()}#> {name[1:]}{tilde()}}}}}{body}{{{{{tilde()}/{name[1:]}{tilde()}}}}}"
    takes = name in ("if", "unless", "each", "with", "wrap")
    head = f"{name} {draw(arguments())}" if takes else name
    mark = draw(st.sampled_from(["#", "#", "#", "^"]))
    parameters = draw(PARAMETERS) if mark == "#" and (takes or name == "bold") else ""
    opening = f"{{{{{tilde()}{mark}{head}{parameters}{tilde()}}}}}"
    otherwise = ""
    if draw(st.booleans()):
        chained = f" {draw(CHAINED)} {draw(PATHS)}" if draw(st.integers(0, 3)) == 0 else ""
        otherwise = f"{{{{{tilde()}else{chained}{tilde()}}}}}{draw(inner)}"
    return f"{opening}{body}{otherwise}{{{{{tilde()}/{name}{tilde()}}}}}"


def templates(size: int = 10) -> st.SearchStrategy[str]:
    """Give whole templates."""
    return st.recursive(
        st.one_of(TEXTS, tags()),
        lambda inner: st.one_of(blocks(inner), st.lists(inner, min_size=1, max_size=4).map("".join)),
        max_leaves=size,
    )


TEMPLATES = templates()


@st.composite
def random_cases(draw: st.DrawFn) -> dict[str, Any]:
    """Give a case: a template, data, and partials that do not call themselves."""
    plain = st.lists(st.one_of(TEXTS, PATHS.map(lambda path: "{{" + path + "}}")), max_size=3).map("".join)
    return {
        "template": draw(TEMPLATES),
        "data": draw(st.dictionaries(st.sampled_from(["a", "b", "c", "x"]), values(), max_size=4)),
        "partials": {"p": draw(plain), "q": draw(st.sampled_from(CALLING))},
    }
