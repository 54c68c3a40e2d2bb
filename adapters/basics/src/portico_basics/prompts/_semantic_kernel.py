"""Semantic Kernel's names for what a prompt's settings say, as its YAML schema reference and config.json have them."""

from __future__ import annotations

from typing import Any

from portico_basics.prompts._wrong import Fields, Wrong, described

_NEUTRAL = {"presence_penalty": 0, "frequency_penalty": 0, "results_per_prompt": 1, "number_of_responses": 1}
_PENALTIES = ("presence_penalty", "frequency_penalty")


def variables_as_inputs(fields: Fields, key: str) -> dict[str, dict[str, Any]]:
    """Return the variables of ``input_variables``, or of the older ``input.parameters``, as inputs in our terms."""
    if key == "input":
        outer = Fields(fields.any(key), fields.place(key))
        variables = outer.listing("parameters") or []
        place = outer.place("parameters")
        outer.finish()
    else:
        variables = fields.listing(key) or []
        place = fields.place(key)
    made: dict[str, dict[str, Any]] = {}
    for index, variable in enumerate(variables):
        given = Fields(variable, f"{place}[{index}]")
        name = given.text("name")
        if not name:
            raise given.wrong("name", "a variable needs a name")
        if name in made:
            raise given.wrong("name", f"{described(name)} stands twice")
        made[name] = _input(given)
    return made


def _input(given: Fields) -> dict[str, Any]:
    default_key = given.one_of("default", "defaultValue")
    schema = given.any("json_schema")
    made: dict[str, Any] = {
        "description": given.text("description"),
        "schema": schema or None,
        "trusted": given.flag("allow_dangerously_set_content"),
    }
    if default_key in given:
        default = given.any(default_key)
        if default is not None:
            made["default"] = default
    required = given.flag(given.one_of("is_required", "required"))
    # There, a default counts whatever is_required says, which is true unless written.
    made["required"] = None if "default" in made else required
    given.any("sample")
    given.any("is_sensitive")
    given.finish()
    return made


def execution_options(fields: Fields, key: str) -> dict[str, Any]:
    """Return the options of a turn that ``execution_settings`` holds: those called default, or the only ones.

    Settings under the name of a service choose that chat service. The older ``completion`` holds them directly.
    """
    value = fields.table(key)
    if not value:
        return {}
    place = fields.place(key)
    if key == "completion":
        return _options(Fields(value, place), None)
    if "default" not in value and len(value) > 1:
        raise Wrong(f"{place}: there are settings for {', '.join(map(repr, value))}, and none called 'default'")
    service = "default" if "default" in value else next(iter(value))
    return _options(Fields(value[service], f"{place}.{service}"), None if service == "default" else service)


def _options(fields: Fields, service: str | None) -> dict[str, Any]:
    named = fields.text("service_id") or None
    if service is not None and named not in (None, service):
        raise fields.wrong("service_id", f"it stands under another name: {service!r}")
    if fields.text("model_id"):
        raise fields.wrong("model_id", "a prompt chooses no model here: name a configured chat service as 'chat'")
    options: dict[str, Any] = {
        "chat": named if named != "default" else None,
        "temperature": fields.number("temperature"),
        "top_p": fields.number("top_p"),
        "max_tokens": fields.integer("max_tokens", 1),
        "stop": fields.texts("stop_sequences") or None,
        "seed": fields.integer("seed"),
        **_function_choice(fields),
    }
    options["chat"] = options["chat"] or service
    extras = {}
    for key, neutral in _NEUTRAL.items():
        number = fields.number(key)
        if number is not None and number != neutral:
            if key not in _PENALTIES:
                raise fields.wrong(key, "a prompt has one answer")
            extras[key] = number
    if extras:
        options["extras"] = extras
    fields.finish()
    return {key: value for key, value in options.items() if value is not None}


def _function_choice(fields: Fields) -> dict[str, Any]:
    value = fields.table("function_choice_behavior")
    if value is None:
        return {}
    given = Fields(value, fields.place("function_choice_behavior"))
    mode = given.choice("type", ("auto", "required", "none"))
    functions = given.texts("functions")
    given.finish()
    if mode is None:
        raise given.wrong("type", "expected auto, required or none")
    return {"tool_choice": mode, "functions": functions}
