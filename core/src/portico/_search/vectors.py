"""Embedding vectors as one float32 buffer with a shape, and the records of a vector store."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from portico._search.filters import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Metadata: TypeAlias = dict[str, Scalar | tuple[Scalar, ...]]
"""Metadata of a record with plain values; lists are tuples."""

_PLAIN = frozenset({str, int, float, bool})

# Made once: `json.dumps` with options makes an encoder for each call.
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Vectors:
    """Hold ``rows`` vectors of ``dimensions`` float32 numbers in one read-only, C-contiguous buffer.

    >>> vectors = Vectors.from_rows([[1.0, 0.0], [0.6, 0.8]])
    >>> vectors.rows, vectors.dimensions
    (2, 2)
    >>> vectors[1].buffer.tolist() == Vectors.from_rows([[0.6, 0.8]]).buffer.tolist()
    True

    Nothing is copied. Any object with the buffer protocol in native byte order will do: a NumPy array, ``bytes``, a
    memory map. NumPy reads it without a copy too::

        np.frombuffer(vectors.buffer, dtype=np.float32).reshape(vectors.rows, vectors.dimensions)

    Raises ``ValueError`` when the buffer does not hold exactly ``rows * dimensions`` float32 numbers.
    """

    __slots__ = ("buffer", "dimensions", "rows")

    buffer: memoryview[float]
    rows: int
    dimensions: int

    def __init__(self, buffer: Any, rows: int, dimensions: int) -> None:
        if rows < 0 or dimensions < 1:
            raise ValueError(f"a shape needs rows >= 0 and dimensions >= 1, not ({rows}, {dimensions})")
        view: memoryview[Any] = memoryview(buffer)
        if not view.c_contiguous:
            raise ValueError("the buffer is not C-contiguous")
        if view.format not in ("f", "@f", "B", "b", "c"):
            raise ValueError(f"the buffer has items of format {view.format!r}, not native float32 or bytes")
        if view.nbytes != rows * dimensions * 4:
            raise ValueError(
                f"{rows} vectors of {dimensions} float32 numbers are {rows * dimensions * 4} bytes; "
                f"the buffer has {view.nbytes}"
            )
        if view.nbytes == 0:
            view = memoryview(b"")
        self.buffer = view.cast("B").cast("f").toreadonly()
        self.rows = rows
        self.dimensions = dimensions

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[float]], *, dimensions: int | None = None) -> Vectors:
        """Copy sequences of numbers into one buffer: for small sets and tests, never for bulk.

        ``dimensions`` is needed only when there are no rows. Raises ``ValueError`` for rows of unequal length.
        """
        buffer = array("f")
        count = 0
        for row in rows:
            if dimensions is None:
                dimensions = len(row)
            if len(row) != dimensions:
                raise ValueError(f"row {count} has {len(row)} numbers, the rows before it {dimensions}")
            buffer.extend(row)
            count += 1
        if dimensions is None:
            raise ValueError("no rows: say how many dimensions they would have")
        return cls(buffer, count, dimensions)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> Vectors:
        """Return one row as a view of shape (1, dimensions)."""
        if not -self.rows <= row < self.rows:
            raise IndexError(f"row {row} of {self.rows}")
        return self.slice(row % self.rows, row % self.rows + 1)

    def __iter__(self) -> Iterator[Vectors]:
        return (self[row] for row in range(self.rows))

    def slice(self, start: int, stop: int) -> Vectors:
        """Return the rows from ``start`` up to ``stop`` as a view; both are clipped to the rows."""
        start, stop, _ = slice(start, stop).indices(self.rows)
        stop = max(start, stop)
        return Vectors(self.buffer[start * self.dimensions : stop * self.dimensions], stop - start, self.dimensions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vectors):
            return NotImplemented
        return (self.rows, self.dimensions, self.buffer) == (other.rows, other.dimensions, other.buffer)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Vectors(rows={self.rows}, dimensions={self.dimensions})"

    def check_records(self, records: Sequence[VectorRecord]) -> None:
        """Raise ``ValueError`` unless there is one record for each row, and no id twice."""
        if len(records) != self.rows:
            raise ValueError(f"there are {len(records)} records and {self.rows} vectors")
        seen: set[str] = set()
        for record in records:
            if record.id in seen:
                raise ValueError(f"the id {record.id!r} stands twice in one upsert")
            seen.add(record.id)

    @staticmethod
    def check_texts(texts: Sequence[str]) -> tuple[str, ...]:
        """Return the texts that a caller gave; a string would be a sequence of its characters.

        >>> Vectors.check_texts(["a red door", "a red roof"])
        ('a red door', 'a red roof')
        >>> Vectors.check_texts("a red door")
        Traceback (most recent call last):
        ...
        TypeError: wanted is a sequence of texts, not one string

        Raises ``TypeError`` for one string, and for an item that is none, with its position from 0.
        """
        if isinstance(texts, str):
            raise TypeError("wanted is a sequence of texts, not one string")
        texts = tuple(texts)
        for position, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"text {position} is {type(text).__name__}, not str")
        return texts


@dataclass(frozen=True, slots=True)
class VectorRecord:
    """A record beside a vector: an id unique in its namespace, and metadata to filter by.

    ``text`` is the text of the vector. Only stores with hybrid search keep it, and find the record by its words too.
    """

    id: str
    metadata: Mapping[str, Scalar | Sequence[Scalar]] = field(default_factory=dict)
    text: str | None = None

    def plain_metadata(self) -> Metadata:
        """Return a copy of the metadata with plain values.

        >>> VectorRecord("a", {"year": 2025, "tags": ["red", "round"]}).plain_metadata()
        {'year': 2025, 'tags': ('red', 'round')}

        Values of subclasses, such as enumerations, become plain ones. Raises ``TypeError``, which names the record, for
        a value that is not a string, a number, a bool or a list of these.
        """
        plain: Metadata = {}
        for name, value in self.metadata.items():
            if type(value) in _PLAIN and type(name) is str:
                plain[name] = value  # type: ignore[assignment]  # what is in a record may be of any type
            elif not isinstance(name, str):
                raise TypeError(f"record {self.id!r}: metadata fields are strings, not {name!r}")
            elif isinstance(value, list | tuple):
                plain[str.__str__(name)] = tuple([_plain(self.id, name, element) for element in value])
            else:
                plain[str.__str__(name)] = _plain(self.id, name, value)
        return plain

    @staticmethod
    def encode_metadata(metadata: Metadata) -> str:
        """Return plain metadata as JSON text in ASCII, for the column of a store."""
        return _encode(metadata)

    @staticmethod
    def decode_metadata(text: str) -> Metadata:
        """Return the metadata that `encode_metadata` wrote; raises ``ValueError`` for anything else.

        >>> VectorRecord.decode_metadata('{"year":2025,"tags":["red","round"]}')
        {'year': 2025, 'tags': ('red', 'round')}
        """
        try:
            metadata: Any = json.loads(text)
            if "[" in text:
                return {name: tuple(value) if isinstance(value, list) else value for name, value in metadata.items()}
        except (TypeError, AttributeError, RecursionError) as error:
            raise ValueError(str(error)) from error
        if not isinstance(metadata, dict):
            raise ValueError("it is no JSON object")
        return metadata


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """A record near a vector, or found by its words too; ``score`` compares within one answer, higher is better.

    The score of a search by vector alone is the cosine, from -1 to 1. Of a hybrid search, ``lexical`` is the part of
    the query's words that are in the record, by their weight, from 0 to 1, and ``vector`` is the cosine.
    """

    id: str
    score: float
    metadata: Mapping[str, Scalar | Sequence[Scalar]]
    lexical: float = 0.0
    vector: float = 0.0


def _plain(record: str, name: str, value: object) -> Scalar:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise TypeError(
        f"record {record!r}: the metadata field {name!r} holds a {type(value).__name__}; "
        "a field holds a str, int, float or bool, or a list of them"
    )
