"""The functions of the plan as components of Haystack, and a pipeline of its five steps as a document."""

import json

from haystack import Pipeline, component

# Components read the annotations of their methods, which may not be strings.


@component
class Upper:
    """Writes in capitals."""

    @component.output_types(text=str)
    def run(self, text: str) -> dict[str, str]:
        """Do it."""
        return {"text": text.upper()}


@component
class Lower:
    """Writes in small letters."""

    @component.output_types(text=str)
    def run(self, text: str) -> dict[str, str]:
        """Do it."""
        return {"text": text.lower()}


@component
class Join:
    """Puts two texts side by side."""

    @component.output_types(text=str)
    def run(self, left: str, right: str) -> dict[str, str]:
        """Do it."""
        return {"text": left + right}


@component
class Repeat:
    """Writes two texts, and what is between them, several times."""

    @component.output_types(text=str)
    def run(self, first: str, second: str, times: int = 2) -> dict[str, str]:
        """Do it."""
        return {"text": f"{first} and {second}" * times}


def document() -> str:
    """Return the pipeline as JSON, as `Pipeline.to_dict` writes it; it begins with the text of ``upper``."""
    pipeline = Pipeline()
    for name, step in {"upper": Upper(), "lower": Lower(), "join": Join(), "twice": Repeat(), "shout": Upper()}.items():
        pipeline.add_component(name, step)
    for sender, receiver in (
        ("upper.text", "lower.text"),
        ("upper.text", "join.left"),
        ("lower.text", "join.right"),
        ("join.text", "twice.first"),
        ("lower.text", "twice.second"),
        ("twice.text", "shout.text"),
    ):
        pipeline.connect(sender, receiver)
    return json.dumps(pipeline.to_dict())
