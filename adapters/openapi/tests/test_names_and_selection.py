"""Which operations become functions, and what these and their parameters are called."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico.errors import ConfigurationError
from portico_openapi._names import distinct, function_names, parameter_names, word


def operation(id: str | None = None, /, **keys: Any) -> dict[str, Any]:
    return {**({"operationId": id} if id is not None else {}), **keys}


SHOP = {
    "/pets": {"get": operation("listPets", tags=["pets", "free"]), "post": operation("pets/create", tags=["pets"])},
    "/pets/{id}": {
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
        "get": operation("pets/get", tags=["pets"]),
        "delete": operation("pets/delete", tags=["pets"]),
    },
    "/pets/{id}/photos": {
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
        "get": operation("photos/list"),
    },
    "/orders": {"get": operation(tags=["orders"]), "put": operation("listPets")},
}
ALL = ["listPets", "pets_create", "pets_get", "pets_delete", "photos_list", "get_orders", "listPets_2"]


async def names(opened: Any, described: Any, **settings: Any) -> list[str]:
    return [function.name for function in await opened(described(SHOP), **settings)]


async def test_names_come_from_ids_or_from_method_and_path(opened, described):
    assert await names(opened, described) == ALL
    paths = {
        "/": {"get": operation()},
        "/a/{b-c}.json": {"get": operation("", parameters=[{"name": "b-c", "in": "path", "schema": {}}])},
        "/ü": {"get": operation("find all – ¡now!")},
        "/x": {"get": operation("日本")},
        "/日本": {"get": operation(), "put": operation(7)},
    }
    plugin = await opened(described(paths))
    assert [function.name for function in plugin] == [
        "get_root", "get_a_b_c_json", "find_all_now", "get_x", "get_root_2", "put_root",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("entries", "chosen"),
    [
        (["listPets"], ["listPets", "listPets_2"]),
        (["listPets_2"], ["listPets_2"]),
        (["pets/get"], ["pets_get"]),
        (["pets_get"], ["pets_get"]),
        (["orders"], ["get_orders"]),
        (["pets/*"], ["pets_create", "pets_get", "pets_delete"]),
        (["*/list", "free"], ["listPets", "photos_list"]),
        (["/pets"], ["listPets", "pets_create"]),
        (["/pets/*"], ["pets_get", "pets_delete"]),
        (["/pets/**"], ["pets_get", "pets_delete", "photos_list"]),
        (["/pets/{id}"], ["pets_get", "pets_delete"]),
        (["GET /pets/**", "put /orders"], ["pets_get", "photos_list", "listPets_2"]),
        (["* /orders"], ["get_orders", "listPets_2"]),
        (["GET **"], ["listPets", "pets_get", "photos_list", "get_orders"]),
    ],
)
async def test_include_and_exclude_choose(opened, described, entries, chosen):
    assert await names(opened, described, include=tuple(entries)) == chosen
    assert await names(opened, described, exclude=tuple(entries)) == [name for name in ALL if name not in chosen]


async def test_exclude_wins_over_include(opened, described):
    assert await names(opened, described, include=("pets",), exclude=("DELETE **", "free")) == [
        "pets_create",
        "pets_get",
    ]


@pytest.mark.parametrize("setting", ["include", "exclude", "effects", "no_effects"])
@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ("listPet", "It has listPets"),
        ("pets/lit", "It has .*pets/get"),
        ("ordrs", "It has .*orders"),
        ("GET /pet", "It has GET /pets"),
        ("/order", "It has /orders"),
        ("zzzzzzzz", "It has listPets, pets/create, pets/get"),
        ("FETCH /pets", "It has "),
        ("", "It has "),
    ],
)
async def test_an_entry_that_means_nothing_is_an_error_with_the_nearest(opened, described, setting, entry, hint):
    with pytest.raises(ConfigurationError, match=rf"functions\.service\.{setting}: .*{hint}"):
        await opened(described(SHOP), **{setting: (entry,)})


async def test_effects_follow_the_method_and_the_settings(opened, described):
    methods = ("get", "head", "options", "trace", "post", "put", "patch", "delete")
    document = described({"/x": {method: operation(f"x_{method}", tags=[method]) for method in methods}})
    plugin = await opened(document)
    assert [function.name for function in plugin if function.effects] == ["x_post", "x_put", "x_patch", "x_delete"]
    plugin = await opened(document, effects=("x_get",), no_effects=("post", "x_p*"))
    assert [function.name for function in plugin if function.effects] == ["x_get", "x_delete"]
    assert plugin["x_get"].tags == {"get"}


async def test_leaving_operations_out_renames_none(opened, described):
    assert await names(opened, described, include=("put /orders",)) == ["listPets_2"]


async def test_what_is_left_out_is_not_reported_as_lost(opened, described):
    paths = {
        "/bad": {"get": {"operationId": "bad", "requestBody": 5}},
        "/worse": 5,
        "worst": {"get": {}},
        "/good": {"get": {"operationId": "good"}},
        "x-more": 5,
    }
    assert [function.name for function in await opened(described(paths))] == ["good"]
    assert opened.lost == {
        "/worse": "expected an object, not 5",
        "worst": "a path begins with a slash",
        "GET /bad": "requestBody: expected an object, not 5",
    }
    await opened(described(paths), include=("good",))
    assert opened.lost == {}
    await opened(described(paths), include=("good", "bad", "/worse"))
    assert list(opened.lost) == ["GET /bad", "/worse"]
    await opened(described(paths), exclude=("bad", "/worse"))
    assert list(opened.lost) == ["worst"]


@pytest.mark.parametrize("setting", ["include", "exclude", "effects", "no_effects"])
async def test_an_operation_that_is_no_object_can_be_named_by_its_function(opened, described, setting):
    plugin = await opened(
        described({"/bad": {"get": 5}, "/good": {"get": operation("good")}}), **{setting: ("get_bad",)}
    )
    assert [function.name for function in plugin] == ([] if setting == "include" else ["good"])
    assert list(opened.lost) == ([] if setting == "exclude" else ["GET /bad"])


async def test_the_lost_are_told_in_the_description_and_once_in_the_log(opened, described, caplog):
    paths = {f"/{number}": {"get": {"requestBody": number}} for number in range(1, 8)} | {"/good": {"get": {}}}
    plugin = await opened(described(paths))
    told = "7 of 8 operations are lost: GET /1 (requestBody: expected an object, not 1); "
    assert plugin.description.startswith(f"A service. {told}")
    assert plugin.description.endswith("; and 2 more.")
    warnings = [record.getMessage() for record in caplog.records if record.name.startswith("portico_openapi")]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"functions.service: {told}")


async def test_a_pattern_that_is_not_checked_is_told_when_the_document_is_loaded(opened, described, call, caplog):
    schema = {"type": "string", "pattern": "^(?=.*[A-Z]).{8,}$"}
    one = operation("enter", parameters=[{"name": "word", "in": "query", "required": True, "schema": schema}])
    plugin = await opened(described({"/enter": {"get": one}}))
    assert "1 patterns are not checked before a call" in caplog.text
    assert schema["pattern"] in caplog.text
    assert plugin["enter"].spec.parameters["properties"]["word"]["pattern"] == schema["pattern"], "models may read it"
    assert plugin["enter"].parameters[0].compiled.structure("short") == "short"


PATTERNS = {"type": "object", "patternProperties": {"^x-.+": {}}}
CLOSED = {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False}


@pytest.mark.parametrize(
    ("schemas", "is_told"),
    [
        ([{**PATTERNS, "unevaluatedProperties": False}], True),
        ([{"allOf": [{"$ref": "#/components/schemas/Patterns"}], "unevaluatedProperties": False}], True),
        ([{"$ref": "#/components/schemas/Both"}], True),
        ([{"$ref": "#/components/schemas/Patterns"}, {"$ref": "#/components/schemas/Closed"}], False),
        ([{"$ref": "#/components/schemas/Closed"}, {"$ref": "#/components/schemas/Patterns"}], False),
        ([PATTERNS, CLOSED], False),
        ([CLOSED, PATTERNS], False),
    ],
)
async def test_names_that_are_not_evaluated_beside_patterns_are_told_of(opened, described, caplog, schemas, is_told):
    both = {"properties": {"a": {"$ref": "#/components/schemas/Patterns"}}, "unevaluatedProperties": False}
    bodies = [{"content": {"application/json": {"schema": schema}}} for schema in schemas]
    paths = {f"/{one}": {"post": operation(f"enter{one}", requestBody=body)} for one, body in enumerate(bodies)}
    components = {"schemas": {"Patterns": PATTERNS, "Closed": CLOSED, "Both": both}}
    await opened(described(paths, components=components))
    assert ("unevaluatedProperties beside patternProperties" in caplog.text) is is_told


async def test_descriptions_say_what_the_document_says(opened, described):
    paths = {
        "/a": {"get": operation("a", summary="List pets", description="All of them.\nIn order.")},
        "/b": {"get": operation("b", description="Only this", deprecated=True)},
        "/c": {"get": operation("c", summary="Same.", description="Same.")},
        "/d": {"get": operation("d", summary=5)},
        "/e": {"get": operation("e", description="word " * 1_000)},
    }
    info = {"title": "The shop", "description": "Sells\npets.\n\nMuch more."}
    plugin = await opened(described(paths, info=info))
    assert plugin.description == "The shop. Sells pets."
    assert plugin["a"].description == "List pets.\n\nAll of them.\nIn order."
    assert plugin["b"].description == "Deprecated. Only this."
    assert plugin["c"].description == "Same."
    assert plugin["d"].description == "GET /d."
    assert len(plugin["e"].description) <= 1_000


async def test_a_clash_of_parameters_is_resolved_by_their_places(opened, call, described, service):
    parameters = [
        {"name": "id", "in": "query", "schema": {}},
        {"name": "id", "in": "path", "required": True, "schema": {}},
        {"name": "ID", "in": "header", "schema": {}},
        {"name": "id", "in": "cookie", "schema": {}},
        {"name": "i.d", "in": "query", "schema": {}},
        {"name": "i-d", "in": "query", "schema": {}},
        {"name": "$", "in": "query", "schema": {}, "deprecated": True, "description": "Odd."},
    ]
    plugin = await opened(described({"/x/{id}": {"get": operation("look", parameters=parameters)}}))
    made = [parameter.name for parameter in plugin["look"].parameters]
    assert made == ["query_id", "id", "ID", "cookie_id", "i_d", "query_i_d", "query"]
    assert plugin["look"].parameters[-1].description == "Deprecated. Odd."
    await call(plugin, "look", id=1, query_id=2, cookie_id=3, i_d=4, query_i_d=5, query=6)
    assert service.last.target == "/x/1?id=2&i.d=4&i-d=5&%24=6"
    assert service.last.headers["cookie"] == "id=3"


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        (5, r"parameters\[0\]: expected a parameter, not 5"),
        ({"in": "query", "schema": {}}, r"parameters\[0\]: it has no name"),
        ({"name": "x", "in": "body", "schema": {}}, r"parameters\[0\]: it is in 'body'; a parameter is in path"),
        ({"name": "x", "schema": {}}, r"parameters\[0\]: it is in nothing"),
        ({"name": "x" * 300, "in": "query", "schema": {}}, "its name has more than 200 characters"),
        ({"name": "x y", "in": "header", "schema": {}}, "'x y' is no name of a header"),
        ({"name": "x", "in": "query"}, "the query parameter 'x': it has neither schema nor content"),
        ({"name": "x", "in": "query", "style": "simple", "schema": {}}, "the style 'simple' is none of a query"),
        (
            {"name": "x", "in": "query", "explode": "maybe", "schema": {}},
            "explode: expected true or false, not 'maybe'",
        ),
        ({"name": "x", "in": "query", "content": {"image/png": {}}}, "its content is image/png; JSON and text"),
        ({"name": "x", "in": "query", "schema": {"type": "int"}}, r"'x'\.schema\.type: 'int' is no type"),
        ({"$ref": "#/components/parameters/X"}, r"parameters\[0\]\.\$ref: .* leads nowhere"),
        ({"name": "x", "in": "path", "schema": {}}, None),
    ],
)
async def test_a_wrong_parameter_loses_its_operation(opened, described, parameter, reason):
    good = {"name": "y", "in": "path", "required": True, "schema": {}}
    item = {"get": operation("bad", parameters=[parameter, good]), "put": operation("good", parameters=[good])}
    plugin = await opened(described({"/a/{y}": item}))
    if reason is None:
        assert [parameter.name for parameter in plugin["bad"].parameters] == ["y"]
    else:
        assert [function.name for function in plugin] == ["good"]
        with pytest.raises(AssertionError, match=reason):
            raise AssertionError(opened.lost["GET /a/{y}"])


async def test_a_path_whose_part_is_not_described_is_lost(opened, described):
    await opened(described({"/a/{b}": {"get": {}}}))
    assert opened.lost == {"GET /a/{b}": "the path names {b}, and no parameter describes it"}


async def test_a_path_may_stand_elsewhere_with_more_beside_it(opened, described):
    components = {"pathItems": {"X": {"get": operation("get"), "put": operation("theirs")}}}
    paths = {
        "/x": {"$ref": "#/components/pathItems/X", "put": operation("ours"), "post": operation("post")},
        "/y": {"$ref": "#/components/pathItems/Y"},
        "/z": None,
    }
    plugin = await opened(described(paths, components=components))
    assert [function.name for function in plugin] == ["ours", "post", "get"]
    assert list(opened.lost) == ["/y"]


@given(st.lists(st.text(max_size=4) | st.sampled_from(["a", "a_2", "a_3", "x" * 80]), max_size=12))
def test_names_are_distinct_and_stay_what_they_are_where_they_can(ids):
    made = function_names([("get", "/p", id) for id in ids])
    assert len(set(made)) == len(made)
    assert all(name and len(name) <= 64 and name.replace("_", "a").isalnum() and name.isascii() for name in made)
    natural = [word(id) or "get_p" for id in ids]
    for wanted, name in zip(natural, made, strict=True):
        assert name == wanted or natural.count(wanted) > 1, f"nobody else wants {wanted!r}, and it became {name!r}"
    assert made == function_names([("get", "/p", id) for id in ids])


@given(
    st.lists(
        st.tuples(st.sampled_from(["path", "query", "header", "cookie"]), st.text("ab-_.", max_size=3)), max_size=10
    )
)
def test_parameters_are_distinct(parameters):
    unique = list(dict.fromkeys(parameters))
    made = parameter_names(unique)
    assert len(set(made)) == len(made) == len(unique)


def test_a_thousand_equal_names_are_numbered_quickly():
    assert distinct(["a"] * 5_000)[-1] == "a_5000"
