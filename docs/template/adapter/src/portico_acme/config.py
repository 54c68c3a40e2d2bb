"""The settings. They are in their own file, so that checking a configuration imports no client library."""

from dataclasses import dataclass, field

from portico.plugins import Secret

__all__ = ["AcmeSettings"]


@dataclass(frozen=True, slots=True)
class AcmeSettings:
    """What can be set in the table `[chat.acme]` of portico.toml.

    >>> AcmeSettings(api_key=Secret("sk-123"))
    AcmeSettings(model='acme-1', api_key=Secret(literal))

    Raises ``ValueError`` for an empty name of a model.
    """

    model: str = field(default="acme-1", metadata={"doc": "The model that answers."})
    api_key: Secret | None = field(default=None, metadata={"doc": "The key, where the service wants one."})

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise ValueError("model is empty; it must be the name of a model")
