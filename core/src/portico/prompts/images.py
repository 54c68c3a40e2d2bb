"""Pictures in prompts: by address, or with their bytes in a data URL."""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

from portico.chat import Image

__all__ = ["image_of", "url_of"]

_DATA = re.compile(r"data:([^,;]*+)((?:;[^,;]*+)*+),", re.IGNORECASE)


def image_of(url: str) -> Image:
    r"""Return the picture of an http, https or data URL.

    >>> image_of("data:image/png;base64,iVBORw==").data
    b'\x89PNG'

    Raises ``ValueError`` for anything else: a path of this machine is nothing that a prompt may send away.
    """
    if url[:5].lower() == "data:":
        found = _DATA.match(url)
        kind = found[1].lower() if found else ""
        if found is None or not kind.startswith("image/"):
            raise ValueError("The data URL of an <image> begins data:image/png;base64, or with another kind of image.")
        content = url[found.end() :]
        if not found[2].lower().endswith(";base64"):
            return Image(data=unquote_to_bytes(content), media_type=kind)
        try:
            return Image(data=base64.b64decode("".join(content.split()), validate=True), media_type=kind)
        except (binascii.Error, ValueError) as error:
            raise ValueError("The data URL of this <image> is not base64.") from error
    if not re.match(r"https?://[^\s]+\Z", url, re.IGNORECASE):
        raise ValueError("An <image> holds an http, https or data URL, and nothing else.")
    return Image(url=url)


def url_of(image: Image) -> str:
    r"""Return the URL that `image_of` reads as this picture.

    >>> url_of(Image(data=b"\x89PNG"))
    'data:image/png;base64,iVBORw=='
    """
    if image.url is not None:
        return image.url
    return f"data:{image.media_type};base64,{base64.b64encode(image.data or b'').decode()}"
