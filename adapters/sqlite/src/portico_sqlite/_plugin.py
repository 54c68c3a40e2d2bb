"""What portico-sqlite registers."""

from portico.registration import Registration


def portico_run_stores() -> list[Registration]:
    """Offer the journal as ``sqlite``."""
    return [
        Registration(
            name="sqlite",
            factory="portico_sqlite.store:SqliteRunStore",
            settings="portico_sqlite.config:SqliteSettings",
            summary="The journal of runs in one SQLite file, which several processes may share.",
        )
    ]
