"""Pictures in prompts: which URLs are read, and that they are written so that they are read again."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from portico._chat.messages import Image
from portico._prompts.prompt import image_of, url_of

KINDS = st.sampled_from(["image/png", "image/jpeg", "image/svg+xml"])


@given(st.builds(lambda data, kind: Image(data=data, media_type=kind), st.binary(), KINDS))
def test_a_picture_that_is_written_as_a_url_is_read_as_the_same_picture(image: Image) -> None:
    assert image_of(url_of(image)) == image


@pytest.mark.parametrize(
    ("url", "image"),
    [
        ("https://a.example/a.png?b=<c>", Image(url="https://a.example/a.png?b=<c>")),
        ("HTTP://A.example/a.png", Image(url="HTTP://A.example/a.png")),
        ("data:image/png;base64,QUJD", Image(data=b"ABC")),
        ("DATA:Image/JPEG;Base64,QUJD", Image(data=b"ABC", media_type="image/jpeg")),
        ("data:image/gif;name=a;base64, QU\n  JD\n", Image(data=b"ABC", media_type="image/gif")),
        ("data:image/svg+xml,%3Csvg/%3E", Image(data=b"<svg/>", media_type="image/svg+xml")),
        ("data:image/svg+xml;utf8,<svg/>", Image(data=b"<svg/>", media_type="image/svg+xml")),
    ],
)
def test_a_picture_is_an_address_or_bytes_in_a_data_url(url: str, image: Image) -> None:
    assert image_of(url) == image
    assert image_of(url_of(image)) == image


NO_KIND = "The data URL of an <image> begins data:image/png;base64, or with another kind of image."
NO_URL = "An <image> holds an http, https or data URL, and nothing else."


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("data:", NO_KIND),
        ("data:image/png;base64", NO_KIND),
        ("data:text/html,<b>", NO_KIND),
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
