"""What portico-type-codecs registers."""

from portico.registration import Registration


def portico_type_codecs() -> list[Registration]:
    """Register the three codecs; none imports its vendor before it meets a type of it."""
    return [
        Registration(
            name="attrs",
            factory="portico_type_codecs.codecs:AttrsTypeCodec",
            summary="Classes of attrs as parameters and results of functions.",
        ),
        Registration(
            name="msgspec",
            factory="portico_type_codecs.codecs:MsgspecTypeCodec",
            summary="Structs and constraints of msgspec as parameters and results of functions.",
        ),
        Registration(
            name="pydantic",
            factory="portico_type_codecs.codecs:PydanticTypeCodec",
            summary="Models, dataclasses and constraints of pydantic as parameters and results of functions.",
        ),
    ]
