"""The folder of a namespace, and the files in it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

DATABASE = "store.sqlite"

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST = 120
_VECTORS = re.compile(r"vectors-(\d+)\.f32")
_GRAPH = re.compile(r"graph-(\d+)-(\d+)-([0-9a-f]{8})\.faiss")


def folder_name(namespace: str) -> str:
    """Return the name of a namespace's folder: safe on any file system, different for different namespaces.

    Everything but small letters, digits, ``-`` and ``_`` is percent-encoded, capital letters too, since some
    file systems do not tell them from small ones. A long name is cut and a hash put in; the database inside
    has the true name.
    """
    encoded = "".join(
        chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in namespace.encode("utf-8", "surrogatepass")
    )
    if len(encoded) <= _LONGEST:
        return f"ns-{encoded}"
    digest = hashlib.sha256(namespace.encode("utf-8", "surrogatepass")).hexdigest()
    return f"long-{encoded[:40].rpartition('%')[0] or encoded[:40]}-{digest[:40]}"


def vectors_file(folder: Path, generation: int) -> Path:
    """Return the file that holds the vectors of a generation."""
    return folder / f"vectors-{generation}.f32"


def graph_file(folder: Path, generation: int, rows: int, checksum: int) -> Path:
    """Return the file of a graph over the first ``rows`` slots; its name says what its bytes must add up to."""
    return folder / f"graph-{generation}-{rows}-{checksum:08x}.faiss"


def generation_of_vectors(name: str) -> int | None:
    """Return the generation of a file of vectors; None for another file."""
    found = _VECTORS.fullmatch(name)
    return int(found[1]) if found else None


def parts_of_graph(name: str) -> tuple[int, int, int] | None:
    """Return generation, rows and checksum of a graph's file; None for another file."""
    found = _GRAPH.fullmatch(name)
    return (int(found[1]), int(found[2]), int(found[3], 16)) if found else None
