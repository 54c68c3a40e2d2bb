"""What portico-plan-folder registers."""

from portico.registration import Registration


def portico_plan_stores() -> list[Registration]:
    """Register the store of plans in a folder."""
    return [
        Registration(
            name="folder",
            factory="portico_plan_folder.store:FolderPlanStore",
            settings="portico_plan_folder.config:PlanFolderSettings",
            summary="Keeps each saved plan as a file in a folder, to be read, compared and used again.",
        )
    ]


def portico_function_plugins() -> list[Registration]:
    """Register the functions of a folder of plans."""
    return [
        Registration(
            name="plans",
            factory="portico_plan_folder.functions:PlanFiles",
            settings="portico_plan_folder.config:PlanFilesSettings",
            summary="The plans of a folder, each a function named after its file.",
        )
    ]
