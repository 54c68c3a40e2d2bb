"""What portico-mcp registers."""

from portico.plugins import Registration


def portico_function_plugins() -> list[Registration]:
    """Register the tools of a server."""
    return [
        Registration(
            name="mcp",
            factory="portico_mcp.functions:MCPFunctions",
            settings="portico_mcp.config:MCPSettings",
            summary="The tools, prompts and resources of a server of the Model Context Protocol.",
        )
    ]
