"""What is this plugin's own: what its functions give, called as a plan or a model calls them."""

from pathlib import Path

import pytest
from portico import Kernel
from portico.errors import ConfigurationError

from portico_acme.config import AcmeSettings
from portico_acme.functions import AcmeFunctions


async def kernel_with(settings: AcmeSettings) -> Kernel:
    kernel = Kernel()
    source = AcmeFunctions(settings, None)
    kernel.add_plugin(await source.load("glossary"))
    return kernel


async def test_a_word_is_defined_with_the_words_that_its_meaning_mentions() -> None:
    kernel = await kernel_with(AcmeSettings())
    term = await kernel.invoke("glossary-define", word="Forge")
    assert (term.word, term.see_also) == ("forge", ["hammer"])


async def test_an_unknown_word_is_an_error_that_names_the_nearest() -> None:
    kernel = await kernel_with(AcmeSettings())
    with pytest.raises(LookupError, match="anvil"):
        await kernel.invoke("glossary-define", word="anvill")


async def test_a_glossary_of_ones_own_is_read(tmp_path: Path) -> None:
    path = tmp_path / "glossary.json"
    path.write_text('{"Kettle": "It boils water."}', "utf-8")
    kernel = await kernel_with(AcmeSettings(path=path))
    assert await kernel.invoke("glossary-words") == ["kettle"]
    assert await kernel.invoke("glossary-words", beginning="x") == []


@pytest.mark.parametrize("text", ["", "[]", '{"kettle": 1}', "{"])
async def test_a_file_of_another_form_is_a_mistake_in_the_configuration(tmp_path: Path, text: str) -> None:
    path = tmp_path / "glossary.json"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match=r"glossary\.json"):
        await kernel_with(AcmeSettings(path=path))


async def test_what_it_gives_is_typed_for_models() -> None:
    kernel = await kernel_with(AcmeSettings())
    spec = kernel.specs["glossary-define"]
    assert set(spec.returns["properties"]) == {"word", "meaning", "see_also"}
    assert spec.parameters["properties"]["word"]["description"].startswith("One word of the glossary")
