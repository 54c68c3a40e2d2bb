"""The settings. They are in their own file, so that checking a configuration imports no client library."""

from dataclasses import dataclass, field

__all__ = ["AcmeSettings"]


@dataclass(frozen=True, slots=True)
class AcmeSettings:
    """What can be set in a table `[search.<name>]` with `use = "acme"` in portico.toml.

    >>> AcmeSettings().site
    'https://acme.example'

    Raises ``ValueError`` for a site that is no address.
    """

    site: str = field(
        default="https://acme.example",
        metadata={"doc": "Where links lead to, without a slash at its end."},
    )

    def __post_init__(self) -> None:
        if not self.site.startswith(("https://", "http://")) or self.site.endswith("/"):
            raise ValueError(f"site is {self.site!r}; it must be like 'https://host', without a slash at its end")
