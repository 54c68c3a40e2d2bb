"""What portico-local-runner registers."""

from portico.registration import Registration


def portico_runners() -> list[Registration]:
    """Register the runner of this process."""
    return [
        Registration(
            name="local",
            factory="portico_local_runner.runner:LocalRunner",
            settings="portico_local_runner.config:LocalRunnerSettings",
            summary="Steps run in this process, so many at a time.",
        )
    ]
