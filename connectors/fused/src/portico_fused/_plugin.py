"""What portico-fused registers."""

from portico.registration import Registration


def portico_text_searches() -> list[Registration]:
    """Register the source that is made of other sources."""
    return [
        Registration(
            name="fused",
            factory="portico_fused.search:FusedTextSearch",
            settings="portico_fused.config:FusedSettings",
            summary="Several sources as one: asked side by side, merged by rank.",
        )
    ]
