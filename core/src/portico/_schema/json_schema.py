"""What packages ask about JSON Schemas, in one place."""

from __future__ import annotations

from portico._schema.compare import fitting_paths, meeting
from portico._schema.definitions import free_name, hoisted, with_definitions
from portico._schema.values import ANNOTATIONS, accepts, resolve


class JsonSchema:
    """Questions about JSON Schemas, which are plain mappings.

    ``accepts(value, schema, root)`` tells whether a value fits: True, False, or None where that is not known.
    ``meeting(schema, root, other, root)`` says whether values of one fit the other: "always", "maybe" or "never".
    ``fitting_paths`` yields the paths of a value whose parts fit another schema. ``resolve(reference, root)`` follows a
    ``$ref``. ``hoist``, ``attach`` and ``free_name`` move the ``$defs`` of a schema that becomes a part of another one.
    ``ANNOTATIONS`` are the keywords that ask for nothing.

    >>> JsonSchema.meeting({"type": "integer"}, {}, {"type": "number"}, {})
    'always'
    """

    ANNOTATIONS = ANNOTATIONS
    accepts = staticmethod(accepts)
    meeting = staticmethod(meeting)
    fitting_paths = staticmethod(fitting_paths)
    resolve = staticmethod(resolve)
    hoist = staticmethod(hoisted)
    attach = staticmethod(with_definitions)
    free_name = staticmethod(free_name)
