"""Read the vectors of an index that FAISS wrote elsewhere, and notice such a file in the store's folder."""

from __future__ import annotations

import importlib
import logging
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from portico_faiss._files import BLOCK, Rows

_HEADER = struct.Struct("<4siq")
"""How `faiss.write_index` begins a file: the kind, the dimensions, the number of vectors."""
_UNIT = 1e-3
_LOG = logging.getLogger("portico_faiss")


def warn_of_others(folder: Path) -> None:
    """Log what indexes of FAISS lie in the store's folder itself: the store did not write them."""
    words = "%s is an index of FAISS with %s vectors of %s dimensions, and is not searched. `import_index` imports it."
    for file in folder.glob("*"):
        with suppress(OSError, struct.error), file.open("rb") as stream:
            kind, dimensions, rows = _HEADER.unpack(stream.read(_HEADER.size))
            if re.match(rb"I[A-Z]?[A-Za-z]\w", kind) and 0 < dimensions < 1 << 20 and 0 <= rows < 1 << 48:
                _LOG.warning(words, file, rows, dimensions)


def read_vectors(file: Path, *, normalise: bool) -> Iterator[tuple[list[int], Rows]]:
    """Yield the vectors of an index block by block, with their numbers: positions, or what `add_with_ids` gave them.

    Raises ``ValueError`` for what cannot be read, cannot give its vectors back, or does not order them by cosine.
    """
    faiss = importlib.import_module("faiss")
    try:
        index = faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC)
        if index.metric_type not in (faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2):
            raise ValueError(f"{file} compares by metric {index.metric_type} of FAISS; this store compares by cosine")
        inner, numbers = _open(faiss, index)
        for start in range(0, len(numbers), BLOCK):
            part = numbers[start : start + BLOCK]
            rows: Rows = inner.reconstruct_batch(part)
            lengths = np.linalg.norm(rows, axis=1)
            if not normalise and not (np.abs(lengths - 1) < _UNIT).all():
                raise ValueError(
                    f"{file} has vectors of other lengths than 1, or only codes of them: compared by cosine they may "
                    "come in another order. With normalise=True they are imported at length 1"
                )
            given = part if inner is index else faiss.vector_to_array(index.id_map)[part]
            yield given.tolist(), rows
    except RuntimeError as error:
        raise ValueError(f"{file} is not an index of FAISS whose vectors can be read back: {error}") from error


def _open(faiss: Any, index: Any) -> tuple[Any, Any]:
    """Return the index that has the vectors, and their keys in it, ascending."""
    if isinstance(index, faiss.IndexIDMap):
        index = faiss.downcast_index(index.index)
    lists = None if isinstance(index, faiss.IndexRefine) else faiss.try_extract_index_ivf(index)
    if lists is None:
        return index, np.arange(index.ntotal)
    if "FastScan" in type(faiss.downcast_index(lists)).__name__:
        # FAISS 1.15 ends the process when it reads them back.
        raise ValueError("an index of fast-scan codes cannot give its vectors back: import the one it was made from")
    lists.set_direct_map_type(faiss.DirectMap.Hashtable)
    stored = lists.invlists
    sizes = [(number, size) for number in range(lists.nlist) if (size := stored.list_size(number))]
    found = [faiss.rev_swig_ptr(stored.get_ids(number), size) for number, size in sizes]
    return index, np.sort(np.concatenate([np.empty(0, np.int64), *found]))
