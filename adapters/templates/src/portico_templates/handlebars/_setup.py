"""What a language is made with, as its compiler needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from portico.ports import TypeCodec
from portico_templates.handlebars._fields import Fields
from portico_templates.handlebars._running import Limits
from portico_templates.handlebars._writing import Texts

# They belong to modules above this one.
Body: TypeAlias = Any


BUILT_IN = frozenset({"each", "if", "unless", "with", "log", "lookup"})


class Setup:
    """What every template of one language shares."""

    def __init__(
        self,
        *,
        helpers: Mapping[str, Callable[..., Any]],
        partials: Mapping[str, str],
        escape: str,
        codecs: Iterable[TypeCodec],
        limits: Limits,
        semantic_kernel_helpers: bool,
    ) -> None:
        codecs = tuple(codecs)
        self.helpers = dict(helpers)
        self.partials = dict(partials)
        self.escapes = escape == "html"
        self.limits = limits
        self.semantic_kernel_helpers = semantic_kernel_helpers
        self.fields = Fields(codecs)
        self.texts = Texts(codecs, javascript=self.escapes, limit=limits.characters)
        self.partial: Callable[[str], Body | None] = lambda name: None
        self.partials_may_set = False
        self.partials_have_markup = False
