"""What is this connector's own."""

import pytest

from portico_acme.config import AcmeSettings
from portico_acme.search import AcmeSearch


async def test_links_lead_to_the_site_of_the_settings() -> None:
    settings = AcmeSettings(site="https://shop.example")
    search = AcmeSearch(settings, None)
    results = await (await search.get_text_search_results("helmet")).list()
    assert [(result.name, result.link) for result in results] == [("Rocket skates", "https://shop.example/skates")]


@pytest.mark.parametrize("site", ["", "shop.example", "https://shop.example/"])
def test_a_site_that_is_no_address_is_refused(site: str) -> None:
    with pytest.raises(ValueError, match="site is"):
        AcmeSettings(site=site)
