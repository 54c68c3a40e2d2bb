"""Every check of the package: `nox` runs all of them, on your machine and on any CI."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.reuse_existing_virtualenvs = True
# Whoever has one Python only, on a CI as well, tests with that.
nox.options.error_on_missing_interpreters = False

PROJECT = nox.project.load_toml("pyproject.toml")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and formatting."""
    session.install(*nox.project.dependency_groups(PROJECT, "lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types, strictly."""
    session.install("-e", ".", *nox.project.dependency_groups(PROJECT, "types"))
    session.run("mypy")


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """Run the tests with every Python that is here; what follows `--` goes to pytest."""
    session.install("-e", ".", *nox.project.dependency_groups(PROJECT, "test"))
    session.run("pytest", *session.posargs)
