"""What mends a package that raised, as one sentence with the command to type."""

from __future__ import annotations

from portico_host.requirements import unmet_needs, what_brings, wrong_builds

__all__ = ["mend_of_failure"]

_DEEPEST = 5


def mend_of_failure(distribution: str, package: str, error: BaseException) -> str:
    """Return what mends ``error``, raised when a package was imported, asked or made.

    A missing module names what brings it; a name that core has not, or a requirement that is not met, the upgrade; a
    compiled module for another Python the new installation. ``package`` is the entry point's name.
    """
    for cause in _causes(error):
        try:
            command = _command(distribution, cause)
        except Exception:  # noqa: BLE001 - errors and metadata of strangers may be damaged in any way
            command = None
        if command is not None:
            return f"Run `{command}`."
    return (
        f"Run `pip install --upgrade {distribution}`, `pip uninstall {distribution}`, or set PORTICO_DISABLE={package}."
    )


def _command(distribution: str, error: BaseException) -> str | None:
    module = (error.name or "") if isinstance(error, ImportError) else ""
    top = module.partition(".")[0]
    unmet = list(unmet_needs(distribution))
    if top == "portico" or (isinstance(error, TypeError) and "Registration.__init__()" in str(error)):
        wanted = next((need.requirement for need, _ in unmet if need.requirement.name == "portico-core"), None)
        return f'pip install --upgrade "portico-core{wanted.specifier if wanted else ""}" {distribution}'
    if isinstance(error, ModuleNotFoundError):
        own = distribution.replace("-", "_")
        if top == own:
            return f"pip install --force-reinstall --no-deps {distribution}"
        brings = what_brings(distribution, module)
        return f'pip install "{brings}"' if brings else None
    if isinstance(error, ImportError):
        for defect in wrong_builds(distribution):
            return defect.mend.partition("`")[2].partition("`")[0]
    return None


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and what it was raised from, the first one first."""
    found = [error]
    while found[-1].__cause__ is not None and len(found) < _DEEPEST:
        found.append(found[-1].__cause__)
    return found
