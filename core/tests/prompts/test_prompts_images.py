"""Pictures in prompts: which URLs are read."""

from __future__ import annotations

import pytest

from portico._chat.messages import Image
from portico._prompts.prompt import image_of


@pytest.mark.parametrize(
    ("url", "image"),
    [
        ("https://a.example/a.png?b=<c>", Image(url="https://a.example/a.png?b=<c>")),
        ("HTTP://A.example/a.png", Image(url="HTTP://A.example/a.png")),
        ("data:image/png;base64,QUJD", Image(data=b"ABC")),
        ("DATA:Image/JPEG;Base64,QUJD", Image(data=b"ABC", media_type="image/jpeg")),
        ("data:image/gif;name=a;base64, QU\n  JD\n", Image(data=b"ABC", media_type="image/gif")),
    ],
)
def test_a_picture_is_an_address_or_bytes_in_a_data_url(url: str, image: Image) -> None:
    assert image_of(url) == image


NO_URL = "An <image> holds an http or https URL, or a data URL such as data:image/png;base64,…"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("data:", NO_URL),
        ("data:image/png;base64", NO_URL),
        ("data:text/html;base64,QUJD", NO_URL),
        ("data:image/svg+xml,<svg/>", NO_URL),
        ("data:image/png;base64,!", "The data URL of this <image> is not base64."),
        ("", NO_URL),
        ("/etc/passwd", NO_URL),
        ("file:///a.png", NO_URL),
        ("https://", NO_URL),
        ("https://a.example/a b.png", NO_URL),
        ("see https://a.example/", NO_URL),
    ],
)
def test_what_is_no_picture_is_refused_in_a_sentence(url: str, told: str) -> None:
    with pytest.raises(ValueError) as refused:
        image_of(url)
    assert str(refused.value) == told
