"""What the check keeps of what it has looked up once, and how much of it."""

from __future__ import annotations

from typing import Any

import pytest

from portico._plans.checking.shapes import Output, Place, Taken, constant, whole

TEXT, COUNT = {"type": "string"}, {"type": "integer"}
LIST = {"type": "array", "items": COUNT}


def test_no_more_than_64_places_are_kept() -> None:
    output, taken = Output(whole(LIST)), Taken(whole(LIST))
    row = taken.single("array")
    assert row is not None
    first, inside = output.at((0,)), taken.inside(row, 0)
    for index in range(1, 64):
        output.at((index,))
        taken.inside(row, index)
    assert output.at((0,)) is first
    assert taken.inside(row, 0) is inside
    output.at((64,))
    taken.inside(row, 64)
    assert output.at((0,)) is not first
    assert taken.inside(row, 0) is not inside
    assert output.at((0,)) == first


def test_what_never_is_taken_is_asked_once_as_long_as_the_place_is_kept() -> None:
    taken = Taken(whole(TEXT))
    text, count = Place(whole(TEXT)), Place(whole(COUNT))
    for _ in range(100):
        assert not taken.never_takes(text)
        assert taken.never_takes(count)
        assert taken.never_takes(Place(constant(7)))
        assert not taken.never_takes(Place(constant("a")))


class Watched(dict[str, Any]):
    """A schema that counts how often it is looked into."""

    looks = 0

    def __contains__(self, name: object) -> bool:
        self.looks += 1
        return super().__contains__(name)


@pytest.mark.parametrize(("kind", "taken"), [(str, True), (int, False)])
def test_whether_a_type_is_taken_is_looked_up_once(kind: type, taken: bool) -> None:
    schema = Watched(TEXT)
    text = Taken(whole(schema))
    assert text.takes_every(kind) is taken
    looks = schema.looks
    assert looks > 0
    assert text.takes_every(kind) is taken
    assert schema.looks == looks


def test_whether_a_place_is_taken_is_looked_up_once_for_each_of_64_places() -> None:
    schema = Watched(TEXT)
    text = Taken(whole(schema))

    def looked_up(place: Place) -> bool:
        before = schema.looks
        assert not text.never_takes(place)
        return schema.looks > before

    *kept, another = [Place(whole({**TEXT, "title": f"{number}"})) for number in range(65)]
    assert all(map(looked_up, kept))
    assert not any(map(looked_up, kept))
    assert looked_up(another)
    assert looked_up(kept[0])
