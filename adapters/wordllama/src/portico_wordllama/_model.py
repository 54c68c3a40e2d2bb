"""The model that the wordllama distribution carries: a tokenizer and one vector per token.

Its files are read directly, never through ``import wordllama``: that import costs more than the reading, brings
an HTTP client that would go looking for a missing file, and configures the root logger. What is computed is the
same: the mean of the tokens' vectors, made a unit vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from tokenizers import Tokenizer

from portico.errors import ServiceUnavailable

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_PIECE = 4096
_WAVE = 65_536
_MANY = 512

Rows = npt.NDArray[np.float32]


class Model:
    """The loaded tokenizer and table; safe to use from several threads."""

    def __init__(self, tokenizer: Tokenizer, table: npt.NDArray[np.floating]) -> None:
        self._tokenizer = tokenizer
        self._table = table

    def rows(self, texts: Sequence[str]) -> Rows:
        """Return one unit row per text, zeros for a text of nothing but white space.

        No text is padded to the length of another, and at most 65,536 characters are tokenized at once and
        4,096 looked up, so that memory is bounded however long a text is. Every sum runs over one text's tokens
        in their order: a row does not depend on its neighbours.
        """
        # A table of half floats takes a third of the start of a command. To widen it pays for many texts only.
        if len(texts) >= _MANY and self._table.dtype != np.float32:
            self._table = self._table.astype(np.float32)
        sums = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        for wave in _waves(texts):
            encodings = self._tokenizer.encode_batch_fast([piece for _, piece in wave], add_special_tokens=False)
            for (row, _), encoding in zip(wave, encodings, strict=True):
                sums[row] += self._table[encoding.ids].sum(axis=0, dtype=np.float32)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        np.divide(sums, lengths, out=sums, where=lengths > 0)
        return sums


def load(dimensions: int) -> Model:
    """Read the model from the installed distribution; nothing is looked for anywhere else.

    The model was trained so that the first 128 and 64 numbers of a vector are vectors too (Matryoshka
    representation learning, Kusupati et al. 2022).
    """
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise ServiceUnavailable("Embeddings 'wordllama' need its model. Run `pip install wordllama`.")
    folder = Path(spec.submodule_search_locations[0])
    try:
        with safe_open(folder / _WEIGHTS, framework="np") as tensors:
            weights = tensors.get_tensor("embedding.weight")
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    except Exception as error:  # tokenizers raises no narrower class for a file that it cannot read
        raise ServiceUnavailable(
            f"Embeddings 'wordllama' cannot read their model in {folder}: {error}. "
            "Run `pip install --force-reinstall wordllama`."
        ) from error
    return Model(tokenizer, weights[:, :dimensions])


def _waves(texts: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """Yield lists of (row, piece), each list of about ``_WAVE`` characters at most."""
    wave: list[tuple[int, str]] = []
    characters = 0
    for row, text in enumerate(texts):
        for piece in _pieces(text):
            if characters + len(piece) > _WAVE:
                yield wave
                wave, characters = [], 0
            wave.append((row, piece))
            characters += len(piece)
    if wave:
        yield wave


def _pieces(text: str) -> Iterator[str]:
    """Yield the text's words, in pieces of at most ``_PIECE`` characters that end where a word ends.

    White space becomes single spaces: to the tokenizer a line break is a byte without meaning, and how a
    paragraph is wrapped should not move its vector. Lone surrogates, which the tokenizer refuses, become "?".
    """
    start = 0
    while start < len(text):
        stop = start + _PIECE
        if stop < len(text):
            space = max(text.rfind(" ", start, stop), text.rfind("\n", start, stop))
            stop = space if space > start else stop
        piece = " ".join(text[start:stop].split())
        if not piece.isascii():
            piece = piece.encode("utf-8", "replace").decode("utf-8")
        if piece:
            yield piece
        start = stop
