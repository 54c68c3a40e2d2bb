"""What namespaces and ids are called in Milvus, whose names and keys are short and of few letters."""

from __future__ import annotations

import hashlib
import re

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")
_LONGEST = 150
"""Characters of an encoded namespace. Milvus takes 255 in a collection's name, and a file name has no more."""

KEY_LENGTH = 40

_ESCAPED = re.compile(r"[\\\x00-\x1f\x7f\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def collection_name(prefix: str, namespace: str) -> str:
    """Return the collection of a namespace: different for different ones, of small letters, digits and ``_``.

    Everything else is the hexadecimal of its UTF-8 after ``_``, capital letters too, since Milvus Lite makes a folder
    of the name and some file systems do not tell them from small ones. A long name has a digest instead, after what no
    encoded one has: a ``_`` that no hexadecimal follows. A prefix has no ``_``, so those of two prefixes differ too.

    >>> collection_name("portico", "my-docs")
    'portico_my_2ddocs'
    """
    data = _bytes(namespace)
    encoded = "".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in data)
    if len(encoded) > _LONGEST:
        encoded = f"_long__{hashlib.sha256(data).hexdigest()}"
    return f"{prefix}_{encoded}"


def key(id: str) -> str:
    """Return the primary key of an id: a digest, so that any text of any length has one of a fixed alphabet.

    160 bits; that two ids have the same one is not to be expected, and what is read is compared with the id itself.
    """
    return hashlib.blake2b(_bytes(id), digest_size=KEY_LENGTH // 2).hexdigest()


def as_text(value: str) -> str:
    """Return a string as Milvus takes it, in valid UTF-8: itself, with backslashes, controls and surrogates escaped.

    JSON cannot do this: there, two half surrogates that stand side by side become one letter.
    """
    return _ESCAPED.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", value)


def from_text(text: str) -> str:
    """Return the string that `as_text` encoded."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", text)


def is_valid(text: str) -> bool:
    """Tell whether a string is valid Unicode, which one with half surrogates is not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
