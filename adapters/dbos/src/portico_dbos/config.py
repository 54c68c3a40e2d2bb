"""The settings of the runner."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen, validators

from portico.plugins import Secret, ValueForm

# DBOS writes it into statements in which a colon or a percent sign means something.
_SCHEMA = ValueForm(
    "(?!pg_)[A-Za-z_][A-Za-z0-9_-]{0,62}", "up to 63 letters, digits, _ and -, a letter first, not beginning with pg_"
)
_VERSION = ValueForm("(?! )[ -~]{1,100}", "a text of 1 to 100 ASCII characters")


@frozen
class Rate:
    """At most ``jobs`` begin within any ``seconds``, of all workers together."""

    jobs: int = field(
        validator=[validators.ge(1), validators.le(1_000_000)], metadata={"doc": "How many jobs of a kind may begin."}
    )
    seconds: float = field(
        default=1.0,
        validator=[validators.ge(0.01), validators.le(86_400)],
        metadata={"doc": "Within how many seconds."},
    )


@frozen(kw_only=True)
class DbosSettings:
    """What can be set under ``[runner.dbos]``.

    >>> DbosSettings(uri=Secret("postgresql://ada:secret@db.example/portico")).concurrency
    8

    Raises ``ValueError`` for an invalid URI, without quoting it, and for a number out of its range.
    """

    uri: Secret | None = field(
        default=None,
        validator=validators.optional(ValueForm.database_uri("postgresql", "postgres")),
        metadata={
            "doc": "The database of all workers, as `postgresql://user:password@host:5432/database`, with the options "
            "of libpq. Without it one SQLite file is used, for processes of one machine."
        },
    )
    schema: str = field(
        default="portico_dbos",
        validator=_SCHEMA,
        metadata={"doc": "The schema of the tables in PostgreSQL; it is made where it is missing."},
    )
    path: Path | None = field(
        default=None,
        metadata={
            "doc": "The SQLite file where there is no `uri`; without either `portico/dbos.sqlite3` in the user's "
            "state folder."
        },
    )
    concurrency: int = field(
        default=8,
        validator=[validators.ge(1), validators.le(1_000)],
        metadata={
            "doc": "How many jobs of each kind a worker carries out at a time. The worker that started last says it "
            "for all."
        },
    )
    rate: Rate | None = field(
        default=None,
        metadata={
            "doc": "`{ jobs = 10, seconds = 1 }`: at most so many jobs of a kind begin within so many seconds, of all "
            "workers together. The worker that started last says it for all."
        },
    )
    poll: float = field(
        default=0.1,
        validator=[validators.ge(0.01), validators.le(60)],
        metadata={"doc": "Seconds between two looks of a worker for jobs of a kind."},
    )
    worker_timeout: float = field(
        default=10.0,
        validator=[validators.ge(0.5), validators.le(3_600)],
        metadata={
            "doc": "Seconds after which a silent worker is gone: others carry out its jobs, and it stops them itself. "
            "The same for all."
        },
    )
    attempts: int = field(
        default=10,
        validator=[validators.ge(1), validators.le(1_000)],
        metadata={"doc": "How many workers may be gone while they had a job, before the job has failed."},
    )
    version: str = field(
        default="1",
        validator=_VERSION,
        metadata={"doc": "Workers take the jobs that were submitted with the same version, whatever their build."},
    )
    keep_days: float = field(
        default=30.0,
        validator=[validators.ge(0.01), validators.le(36_500)],
        metadata={"doc": "Days that ended jobs and the records of ended runs are kept; workers remove them."},
    )
    pool_size: int = field(
        default=10,
        validator=[validators.ge(4), validators.le(1_000)],
        metadata={"doc": "Connections of one process to the database at most. They are opened as they are needed."},
    )
