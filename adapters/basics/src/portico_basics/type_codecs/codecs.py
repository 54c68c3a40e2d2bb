"""The three codecs. They recognise their kinds without importing anybody's library."""

import sys
import typing
from collections.abc import Callable
from importlib.util import find_spec

from portico.plugins import Compiled, Services

Inner: typing.TypeAlias = Callable[[object], Compiled]


class AttrsTypeCodec:
    """Compile classes of attrs.

    >>> import attrs
    >>> from portico.plugins import compile_type
    >>> @attrs.frozen
    ... class Stay:
    ...     hotel: str
    ...     nights: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    >>> stay = compile_type(Stay, [AttrsTypeCodec()])
    >>> stay.structure({"hotel": "Ritz", "nights": 2})
    Stay(hotel='Ritz', nights=2)
    >>> stay.structure({"hotel": "Ritz", "nights": 0})
    Traceback (most recent call last):
    portico.plugins.Mismatch: $.nights: expected a valid nights, got 'nights' must be >= 1: 0

    May be used from several threads.
    """

    def __init__(self, settings: None = None, services: Services | None = None) -> None:
        self.name = "attrs"

    def compile(self, hint: object, inner: Inner) -> Compiled | None:
        """Return the compiled class, None for anything else."""
        if not hasattr(_class_of(hint), "__attrs_attrs__") and not _is_noted(hint, "portico_basics"):
            return None
        from portico_basics.type_codecs.attrs_classes import compile_class, compile_validated

        return (compile_validated if typing.get_origin(hint) is typing.Annotated else compile_class)(hint, inner)


class MsgspecTypeCodec:
    """Compile Structs of msgspec, and types with a ``msgspec.Meta``.

    >>> from typing import Annotated
    >>> import msgspec
    >>> from portico.plugins import compile_type
    >>> class Stay(msgspec.Struct, rename="camel"):
    ...     hotel_name: str
    ...     nights: Annotated[int, msgspec.Meta(ge=1)] = 1
    >>> stay = compile_type(Stay, [MsgspecTypeCodec()])
    >>> stay.structure({"hotelName": "Ritz"})
    Stay(hotel_name='Ritz', nights=1)
    >>> stay.structure({"hotelName": 5})
    Traceback (most recent call last):
    portico.plugins.Mismatch: $.hotelName: expected str, got int

    May be used from several threads.
    """

    def __init__(self, settings: None = None, services: Services | None = None) -> None:
        self.name = "msgspec"

    def compile(self, hint: object, inner: Inner) -> Compiled | None:
        """Return the compiled type, None for what is not msgspec's."""
        if "msgspec" not in sys.modules:
            return None
        if not _is_noted(hint, "msgspec") and not hasattr(_class_of(hint), "__struct_config__"):
            return None
        from portico_basics.type_codecs.msgspec_structs import compile_type

        return compile_type(hint, inner)


class PydanticTypeCodec:
    """Compile models and dataclasses of pydantic, its own types, and types with its constraints.

    >>> from typing import Annotated
    >>> from pydantic import BaseModel, Field
    >>> from portico.plugins import compile_type
    >>> class Stay(BaseModel):
    ...     hotel: str
    ...     nights: Annotated[int, Field(ge=1)] = 1
    >>> stay = compile_type(Stay, [PydanticTypeCodec()])
    >>> stay.structure({"hotel": "Ritz"})
    Stay(hotel='Ritz', nights=1)
    >>> stay.structure({"hotel": "Ritz", "nights": 0})
    Traceback (most recent call last):
    portico.plugins.Mismatch: $.nights: expected greater than or equal to 1, got 0

    May be used from several threads.
    """

    def __init__(self, settings: None = None, services: Services | None = None) -> None:
        self.name = "pydantic"

    def compile(self, hint: object, inner: Inner) -> Compiled | None:
        """Return the compiled type, None for what is not pydantic's."""
        loaded = "pydantic" in sys.modules
        noted = _is_noted(hint, "pydantic") or (
            _is_noted(hint, "annotated_types") and (loaded or find_spec("pydantic") is not None)
        )
        kind = _class_of(hint)
        if not noted and not (
            loaded and (hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__"))
        ):
            return None
        from portico_basics.type_codecs.pydantic_types import compile_pydantic

        return compile_pydantic(hint, self)


def _class_of(hint: object) -> type | None:
    """Return the class that a hint names, with or without arguments."""
    kind = typing.get_origin(hint) or hint
    return kind if isinstance(kind, type) else None


def _is_noted(hint: object, package: str) -> bool:
    """Tell whether an ``Annotated`` carries something of a package, an object or a class."""
    if typing.get_origin(hint) is not typing.Annotated:
        return False
    kinds = (note if isinstance(note, type) else type(note) for note in typing.get_args(hint)[1:])
    return any(kind.__module__.partition(".")[0] == package for kind in kinds)
