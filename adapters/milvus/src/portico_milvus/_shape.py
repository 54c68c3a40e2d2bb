"""The collection of a namespace: its fields, its index, and what is known of one that is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from portico_milvus._connection import Link
from portico_milvus._errors import not_ours
from portico_milvus._filters import TERM_LENGTH
from portico_milvus._names import KEY_LENGTH, as_text
from portico_milvus.config import MilvusSettings

LONGEST_TEXT = 65_535
"""Bytes of a text or of a JSON object in a field, which is Milvus's own limit."""

MOST_TERMS = 4_096
"""Elements of a list in a field, which is Milvus's own limit."""

_VECTOR = "vector"
_VECTOR_OF_ONE = "vector_of_one"
"""The field of vectors with one dimension: a Milvus server wants two, so there is a zero in them too."""

_OTHERS = ("pk", "id", "metadata", "terms", "bounds")
_LEAST_WIDTH = 2
_DESCRIBED = 200
"""Characters of a namespace that its collection is described with, for people."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a collection."""

    name: str
    dimensions: int
    field: str
    """The field that holds the vectors."""
    width: int
    """Numbers of a vector in the field."""
    graph: bool
    """Whether it is searched along an HNSW graph."""


def read_shape(link: Link, name: str, timeout: float) -> Shape | None:
    """Return what a collection is like, ready to be searched; None when there is none.

    Raises ``StoreError`` for one with other fields than ours.
    """
    if not link.client.has_collection(name, timeout=timeout):
        return None
    described = link.client.describe_collection(name, timeout=timeout)
    fields = {field["name"]: field for field in described["fields"]}
    vector = _VECTOR_OF_ONE if _VECTOR_OF_ONE in fields else _VECTOR
    if set(fields) != {*_OTHERS, vector}:
        raise not_ours(name)
    width = int(fields[vector]["params"]["dim"])
    index = link.client.describe_index(name, vector, timeout=timeout)
    return Shape(
        name,
        1 if vector == _VECTOR_OF_ONE else width,
        vector,
        width,
        index is not None and str(index.get("index_type")).upper() == "HNSW",
    )


def make_ready(link: Link, shape: Shape, settings: MilvusSettings) -> None:
    """Let a collection be searched: index it, where whoever made it came to no end, and load it."""
    client, timeout = link.client, settings.timeout
    if client.describe_index(shape.name, shape.field, timeout=timeout) is None:
        try:
            _create_indexes(link, shape.name, shape.field, settings)
        except Exception:
            # Whoever makes the collection at this moment may have been quicker.
            if client.describe_index(shape.name, shape.field, timeout=timeout) is None:
                raise
    client.load_collection(shape.name, timeout=timeout)
    if link.is_lite:
        # What was written before a crash is in its log only, where each search reads it row by row.
        client.flush(shape.name, timeout=timeout)
        link.unflushed.pop(shape.name, None)


def create(link: Link, name: str, namespace: str, dimensions: int, settings: MilvusSettings) -> None:
    """Create a collection for vectors of ``dimensions`` numbers, and make it ready.

    It has one shard, so that what one request writes is in one channel of the server's log.
    """
    from pymilvus import DataType  # type: ignore[import-untyped]

    vector = _VECTOR if dimensions >= _LEAST_WIDTH else _VECTOR_OF_ONE
    width = max(dimensions, _LEAST_WIDTH)
    schema = link.client.create_schema(
        auto_id=False, enable_dynamic_field=False, description=as_text(namespace)[:_DESCRIBED]
    )
    schema.add_field("pk", DataType.VARCHAR, is_primary=True, max_length=KEY_LENGTH)
    schema.add_field("id", DataType.VARCHAR, max_length=LONGEST_TEXT)
    schema.add_field("metadata", DataType.VARCHAR, max_length=LONGEST_TEXT)
    schema.add_field(
        "terms", DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=MOST_TERMS, max_length=TERM_LENGTH
    )
    schema.add_field("bounds", DataType.JSON)
    schema.add_field(vector, DataType.FLOAT_VECTOR, dim=width)
    link.client.create_collection(
        name, schema=schema, num_shards=1, consistency_level="Strong", timeout=settings.timeout
    )
    make_ready(link, Shape(name, dimensions, vector, width, settings.index == "hnsw"), settings)


def _create_indexes(link: Link, name: str, vector: str, settings: MilvusSettings) -> None:
    indexes = link.client.prepare_index_params()
    parameters: dict[str, Any] = {}
    if settings.index == "hnsw":
        parameters = {"params": {"M": settings.hnsw_neighbours, "efConstruction": settings.hnsw_construction}}
    kind = {"exact": "FLAT", "hnsw": "HNSW", "auto": "AUTOINDEX"}[settings.index]
    indexes.add_index(vector, index_type=kind, index_name=vector, metric_type="IP", **parameters)
    if not link.is_lite:
        # Milvus Lite has no such index, and looks at every list.
        indexes.add_index("terms", index_type="INVERTED", index_name="terms")
    # There is nothing to index yet, so nothing to wait for.
    link.client.create_index(name, indexes, timeout=settings.timeout, sync=False)
