"""What portico-dbos registers."""

from portico.plugins import Registration


def portico_runners() -> list[Registration]:
    """Register the runner on DBOS as ``dbos``."""
    return [
        Registration(
            name="dbos",
            factory="portico_dbos.runner:DbosRunner",
            settings="portico_dbos.config:DbosSettings",
            summary="Durable runs and worker processes, on DBOS with PostgreSQL or one SQLite file.",
        )
    ]
