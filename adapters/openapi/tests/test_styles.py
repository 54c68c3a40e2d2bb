"""Values in paths, queries, headers and cookies, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from portico.errors import ArgumentsInvalid

# The examples of OpenAPI 3.1.1, "Style Examples", and what follows from RFC 6570 where it has none.
EMPTY, WORD, ARRAY, OBJECT = "", "blue", ["blue", "black", "brown"], {"R": 100, "G": 200, "B": 150}
PATHS = [
    ("simple", False, WORD, "blue"),
    ("simple", False, ARRAY, "blue,black,brown"),
    ("simple", False, OBJECT, "R,100,G,200,B,150"),
    ("simple", True, ARRAY, "blue,black,brown"),
    ("simple", True, OBJECT, "R=100,G=200,B=150"),
    ("simple", False, "a/b?c#d;e,f g%ü'", "a%2Fb%3Fc%23d%3Be%2Cf%20g%25%C3%BC%27"),
    ("simple", False, ["a,b", "c"], "a%2Cb,c"),
    ("simple", False, True, "true"),
    ("simple", False, 1.0, "1"),
    ("simple", False, 1.5e300, "1.5e%2B300"),
    ("simple", False, "a.b", "a.b"),
    ("simple", False, "...", "..."),
]
QUERIES = [
    ("form", True, EMPTY, "color="),
    ("form", True, WORD, "color=blue"),
    ("form", True, ARRAY, "color=blue&color=black&color=brown"),
    ("form", True, OBJECT, "R=100&G=200&B=150"),
    ("form", False, EMPTY, "color="),
    ("form", False, WORD, "color=blue"),
    ("form", False, ARRAY, "color=blue,black,brown"),
    ("form", False, OBJECT, "color=R,100,G,200,B,150"),
    ("form", False, ["a,b", "c d"], "color=a%2Cb,c%20d"),
    ("form", True, "a&b=c+d e", "color=a%26b%3Dc%2Bd%20e"),
    ("form", True, "blue and ‹green›", "color=blue%20and%20%E2%80%B9green%E2%80%BA"),
    ("form", True, False, "color=false"),
    ("form", True, -0.5, "color=-0.5"),
    ("form", True, 12345678901234567890, "color=12345678901234567890"),
    ("form", True, [{"a": [1, None]}, "b"], "color=%7B%22a%22%3A%5B1%2Cnull%5D%7D&color=b"),
    ("form", True, [1, None, 2], "color=1&color=2"),
    ("spaceDelimited", False, ARRAY, "color=blue%20black%20brown"),
    ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
    ("spaceDelimited", True, ARRAY, "color=blue&color=black&color=brown"),
    ("pipeDelimited", False, ARRAY, "color=blue%7Cblack%7Cbrown"),
    ("pipeDelimited", False, OBJECT, "color=R%7C100%7CG%7C200%7CB%7C150"),
    ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
    ("deepObject", False, {"a": {"b": [1, 2]}}, "color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D=2"),
    ("deepObject", True, ["x"], "color%5B0%5D=x"),
]
HEADERS = [
    (False, WORD, "blue"),
    (False, ARRAY, "blue,black,brown"),
    (False, OBJECT, "R,100,G,200,B,150"),
    (True, OBJECT, "R=100,G=200,B=150"),
    (False, "50% / 100 %", "50% / 100 %"),
    (False, True, "true"),
]
COOKIES = [
    (True, WORD, "color=blue"),
    (False, ARRAY, "color=blue,black,brown"),
    (False, OBJECT, "color=R,100,G,200,B,150"),
    (True, ARRAY, "color=blue; color=black; color=brown"),
    (True, OBJECT, "R=100; G=200; B=150"),
    (True, 'a; b="c"', "color=a%3B%20b%3D%22c%22"),
]


def parameter(location: str, /, **keys: Any) -> dict[str, Any]:
    return {"name": "color", "in": location, "required": location == "path", "schema": {}, **keys}


def operation(*parameters: dict[str, Any]) -> dict[str, Any]:
    return {"get": {"operationId": "paint", "parameters": list(parameters)}}


@pytest.mark.parametrize(("style", "explode", "value", "written"), PATHS)
async def test_in_a_path(opened, call, described, service, style, explode, value, written):
    paths = {"/a{color}z/end": operation(parameter("path", style=style, explode=explode))}
    await call(await opened(described(paths)), "paint", color=value)
    assert service.last.target == f"/a{written}z/end"


@pytest.mark.parametrize(("style", "explode", "value", "written"), QUERIES)
async def test_in_a_query(opened, call, described, service, style, explode, value, written):
    paths = {"/": operation(parameter("query", style=style, explode=explode))}
    await call(await opened(described(paths)), "paint", color=value)
    assert service.last.target == f"/?{written}"


@pytest.mark.parametrize(("explode", "value", "written"), HEADERS)
async def test_in_a_header(opened, call, described, service, explode, value, written):
    await call(await opened(described({"/": operation(parameter("header", explode=explode))})), "paint", color=value)
    assert service.last.headers["color"] == written


@pytest.mark.parametrize(("explode", "value", "written"), COOKIES)
async def test_in_a_cookie(opened, call, described, service, explode, value, written):
    await call(await opened(described({"/": operation(parameter("cookie", explode=explode))})), "paint", color=value)
    assert service.last.headers["cookie"] == written


async def test_the_defaults_of_each_place(opened, call, described, service):
    places = ("path", "query", "header", "cookie")
    parameters = [{"name": f"c{place}", "in": place, "required": True, "schema": {}} for place in places]
    plugin = await opened(described({"/{cpath}": operation(*parameters)}))
    await call(plugin, "paint", **{f"c{place}": ["x", "y"] for place in places})
    assert service.last.target == "/x,y?cquery=x&cquery=y"
    assert service.last.headers["cheader"] == "x,y"
    assert service.last.headers["cookie"] == "ccookie=x; ccookie=y"


async def test_text_beyond_ascii_in_a_header_is_utf_8(opened, call, described, service):
    await call(await opened(described({"/": operation(parameter("header"))})), "paint", color="grün")
    assert service.last.headers["color"].encode("latin-1").decode() == "grün"


@pytest.mark.parametrize("value", [None, [], {}, [None], {"a": None}])
@pytest.mark.parametrize("location", ["query", "header", "cookie"])
async def test_what_is_undefined_is_not_sent(opened, call, described, service, location, value):
    await call(await opened(described({"/": operation(parameter(location))})), "paint", color=value)
    assert service.last.target == "/"
    assert "color" not in service.last.headers
    assert "cookie" not in service.last.headers


@pytest.mark.parametrize("value", ["", None, [], {}])
async def test_a_path_is_never_left_without_its_value(opened, call, described, service, value):
    plugin = await opened(described({"/colors/{color}": operation(parameter("path"))}))
    with pytest.raises(ArgumentsInvalid, match="color: it is empty, and the path needs a value"):
        await call(plugin, "paint", color=value)
    assert service.requests == []


@pytest.mark.parametrize("value", ["..", ".", "../x", "a/../../b", "..\\x", ["..", ".."][:1]])
async def test_a_value_cannot_lead_out_of_its_path(opened, call, described, service, value):
    plugin = await opened(described({"/colors/{color}/x": operation(parameter("path"))}))
    with pytest.raises(ArgumentsInvalid, match=r"color: .* in a path would lead elsewhere"):
        await call(plugin, "paint", color=value)
    assert service.requests == []


async def test_two_values_cannot_lead_out_of_a_path_together(opened, call, described, service):
    one, two = parameter("path"), {**parameter("path"), "name": "shade"}
    plugin = await opened(described({"/colors/{color}{shade}/x": operation(one, two)}))
    with pytest.raises(ArgumentsInvalid, match="would lead elsewhere"):
        await call(plugin, "paint", color=".", shade=".")
    assert service.requests == []


@pytest.mark.parametrize("value", ["a\r\nX-Admin: yes", "a\nb", "a\x00b", " a", "a ", "\x7f"])
async def test_a_value_cannot_make_a_second_header(opened, call, described, service, value):
    plugin = await opened(described({"/": operation(parameter("header"))}))
    with pytest.raises(ArgumentsInvalid, match=r"color: .*header"):
        await call(plugin, "paint", color=value)
    assert service.requests == []


@pytest.mark.parametrize("location", ["path", "query", "header", "cookie"])
async def test_a_lone_surrogate_is_refused(opened, call, described, service, location):
    plugin = await opened(described({"/{color}" if location == "path" else "/": operation(parameter(location))}))
    with pytest.raises(ArgumentsInvalid, match=r"color: .*surrogates"):
        await call(plugin, "paint", color="\ud800")
    assert service.requests == []


async def test_reserved_characters_pass_where_they_may(opened, call, described, service):
    reserved = parameter("query", allowReserved=True)
    plugin = await opened(described({"/": operation(reserved)}))
    await call(plugin, "paint", color=":/?@!$'()*,;=-._~%2F%zz")
    assert service.last.target == "/?color=:/?@!$'()*,;=-._~%2F%25zz"
    # These would begin another parameter, end the query, or mean a space.
    await call(plugin, "paint", color="a&b=c#d+e[f] ü")
    assert service.last.target == "/?color=a%26b=c%23d%2Be%5Bf%5D%20%C3%BC"


async def test_names_are_encoded_like_values(opened, call, described, service):
    query = {"name": "filter[name]&x", "in": "query", "schema": {"type": "string"}}
    await call(await opened(described({"/": operation(query)})), "paint", filter_name_x="v")
    assert service.last.target == "/?filter%5Bname%5D%26x=v"


@pytest.mark.parametrize(
    ("location", "written"),
    [
        ("path", "/%7B%22a%22%3A%5B1%2Ctrue%2Cnull%2C%22%C3%BC%22%5D%7D"),
        ("query", "/?color=%7B%22a%22%3A%5B1%2Ctrue%2Cnull%2C%22%C3%BC%22%5D%7D"),
        ("header", '{"a":[1,true,null,"\\u00fc"]}'),
        ("cookie", "color=%7B%22a%22%3A%5B1%2Ctrue%2Cnull%2C%22%C3%BC%22%5D%7D"),
    ],
)
async def test_content_of_a_parameter_is_json(opened, call, described, service, location, written):
    content = parameter(location, content={"application/json": {"schema": {"type": "object"}}})
    del content["schema"]
    plugin = await opened(described({"/{color}" if location == "path" else "/": operation(content)}))
    await call(plugin, "paint", color={"a": [1, True, None, "ü"]})
    got = {"header": service.last.headers.get("color"), "cookie": service.last.headers.get("cookie")}
    assert got.get(location, service.last.target) == written


async def test_the_order_of_parameters_is_that_of_the_document(opened, call, described, service):
    path_level = [{"name": "b", "in": "query", "schema": {}}, {"name": "a", "in": "query", "schema": {}}]
    item = {"parameters": path_level, **operation({"name": "c", "in": "query", "schema": {}})}
    plugin = await opened(described({"/x": item}))
    assert [parameter.name for parameter in plugin["paint"].parameters] == ["b", "a", "c"]
    await call(plugin, "paint", c=3, a=1, b=2)
    assert service.last.target == "/x?b=2&a=1&c=3"


async def test_an_operation_overrides_a_parameter_of_its_path(opened, call, described, service):
    item = {
        "parameters": [{"name": "color", "in": "query", "style": "pipeDelimited", "schema": {"type": "array"}}],
        **operation(parameter("query", explode=False, schema={"type": "array", "maxItems": 2})),
    }
    plugin = await opened(described({"/x": item}))
    await call(plugin, "paint", color=["a", "b"])
    assert service.last.target == "/x?color=a,b"
    with pytest.raises(ArgumentsInvalid, match="color: expected maxItems 2"):
        await call(plugin, "paint", color=["a", "b", "c"])


async def test_headers_that_are_not_the_callers_to_set_are_no_parameters(opened, described):
    names = ("Accept", "content-type", "Authorization", "Host", "Content-Length", "Transfer-Encoding", "X-Own")
    parameters = [{"name": name, "in": "header", "required": True, "schema": {"type": "string"}} for name in names]
    plugin = await opened(described({"/x": operation(*parameters)}))
    assert [parameter.name for parameter in plugin["paint"].parameters] == ["X_Own"]


async def test_a_path_with_a_query_of_its_own_is_continued(opened, call, described, service):
    plugin = await opened(described({"/x y?kind=a#top": operation(parameter("query"))}))
    await call(plugin, "paint", color="red")
    assert service.last.target == "/x%20y?kind=a&color=red"


async def test_code_may_give_tuples_and_is_told_what_it_forgot(opened, described, service):
    plugin = await opened(described({"/{color}": operation(parameter("path"), {**parameter("query"), "name": "q"})}))
    assert await plugin["paint"].callable(color=("a", "b"), q=(1, 2)) == {}
    assert service.last.target == "/a,b?q=1&q=2"
    with pytest.raises(ArgumentsInvalid, match="color: missing; size: unknown"):
        await plugin["paint"].callable(size=1)
    with pytest.raises(ArgumentsInvalid, match="q: it is no JSON value"):
        await plugin["paint"].callable(color="a", q=float("nan"))
    with pytest.raises(ArgumentsInvalid, match="q: it is no JSON value"):
        await plugin["paint"].callable(color="a", q=object())
