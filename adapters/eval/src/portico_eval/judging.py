"""Facts judged by a model, and cases as a dataset, with pydantic-evals."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from portico import Message
from portico.errors import ConfigurationError
from portico.ports import ChatService
from portico_eval.cases import read_cases

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models.function import AgentInfo
    from pydantic_evals import Dataset

    from portico import Kernel
    from portico_eval.measuring import Judge


def require_extra(what: str) -> None:
    """Raise ``ConfigurationError`` where pydantic-evals is not installed."""
    if find_spec("pydantic_evals") is None:
        raise ConfigurationError(f"{what} needs pydantic-evals. Run `pip install 'portico-eval[judge]'`.")


def make_judge(kernel: Kernel, chat: str | None = None) -> Judge:
    """Return a judge that asks a chat service of the kernel by the `judge_input_output` of pydantic-evals.

    Raises ``ConfigurationError`` where pydantic-evals is not installed, and for a service that is no language model.
    """
    require_extra("--judge")
    service = kernel.service(ChatService, chat)
    if not service.capabilities.language_model:
        raise ConfigurationError(
            f"The chat service {service.name!r} only quotes, and cannot judge. Name a model under [chat], or with "
            "--judge-chat NAME."
        )
    from pydantic_ai.models.function import FunctionModel
    from pydantic_evals.evaluators.llm_as_a_judge import judge_input_output

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        from pydantic_ai.messages import ModelResponse, ToolCallPart
        from pydantic_ai.usage import RequestUsage

        [tool] = info.output_tools
        turn = await kernel.complete(_messages_of(messages), returns=tool.parameters_json_schema, chat=service)
        usage = RequestUsage(input_tokens=turn.usage.input_tokens, output_tokens=turn.usage.output_tokens)
        return ModelResponse([ToolCallPart(tool.name, turn.value)], usage=usage)

    model = FunctionModel(answer, model_name=service.name)

    async def judge(question: str, said: str, fact: str) -> tuple[bool, str]:
        grading = await judge_input_output(question, said, f"The output states this: {fact}", model)
        return grading.pass_, grading.reason

    return judge


def _messages_of(messages: list[ModelMessage]) -> list[Message]:
    """Return the words of requests of pydantic-ai as messages; its agents of judges write no others."""
    parts = [part for message in messages if message.kind == "request" for part in message.parts]
    said = [(part.part_kind, content) for part in parts if isinstance(content := getattr(part, "content", None), str)]
    return [Message.of("system" if kind == "system-prompt" else "user", content) for kind, content in said]


def make_dataset(file: str) -> Dataset[str, str, dict[str, Any]]:
    """Return the cases of a file as a dataset with an evaluator of the facts."""
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import Evaluator, EvaluatorContext

    read = {case.id: case for case in read_cases(file)}

    @dataclass
    class FactsSaid(Evaluator[str, str, dict[str, Any]]):
        """Tell of each fact whether the answer states it."""

        def evaluate(self, ctx: EvaluatorContext[str, str, dict[str, Any]]) -> dict[str, bool]:
            return {str(fact): fact.stands_in(ctx.output) for fact in read[ctx.name or ""].facts}

    cases = [Case(name=case.id, inputs=case.question, metadata=dict(case.body)) for case in read.values()]
    return Dataset(name=file, cases=cases, evaluators=[FactsSaid()])
