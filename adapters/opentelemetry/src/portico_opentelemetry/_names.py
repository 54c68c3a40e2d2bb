"""The names of OpenTelemetry's conventions for generative AI that are used here, and our own beside them.

The conventions are still in development, so their names stand here and nowhere else:
https://github.com/open-telemetry/semantic-conventions-genai
"""

from __future__ import annotations

from typing import Final

SCOPE: Final = "portico_opentelemetry"

INVOKE_WORKFLOW: Final = "invoke_workflow"
PLAN: Final = "plan"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EMBEDDINGS: Final = "embeddings"
RETRIEVAL: Final = "retrieval"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
WORKFLOW: Final = "gen_ai.workflow.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
ERROR_TYPE: Final = "error.type"
SERVER: Final = "server.address"
SERVER_PORT: Final = "server.port"

REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
REQUEST_TOP_K: Final = "gen_ai.request.top_k"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_SEED: Final = "gen_ai.request.seed"
REQUEST_STOP: Final = "gen_ai.request.stop_sequences"
REQUEST_STREAM: Final = "gen_ai.request.stream"
OUTPUT_TYPE: Final = "gen_ai.output.type"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"

INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITTEN_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - a name

TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"

DIMENSIONS: Final = "gen_ai.embeddings.dimension.count"
DATA_SOURCE: Final = "gen_ai.data_source.id"
QUERY: Final = "gen_ai.retrieval.query.text"

INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"

TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - a name
DURATION: Final = "gen_ai.client.operation.duration"

RUN: Final = "portico.run"
PLANNER: Final = "portico.planner"
OUTCOME: Final = "portico.outcome"
"""How a run ended: done, infeasible, held or uncertain; of a proposal: plan, answer or infeasible."""
RESUMED: Final = "portico.resumed"
PLAN_DIGEST: Final = "portico.plan.digest"
PLAN_STEPS: Final = "portico.plan.steps"
STEP: Final = "portico.step"
APPROVAL: Final = "portico.approval"
"""What the approval of a plan or a step gave: approved or held; of a plan also edited or refused."""
COST: Final = "portico.cost"
"""US dollars."""
TEXTS: Final = "portico.embeddings.texts"
RESULTS: Final = "portico.retrieval.results"
"""How many results of a search were read."""

PROVIDERS: Final = {"portico_anthropic": "anthropic", "portico_gemini": "gcp.gemini", "portico_openai": "openai"}
"""The conventions' names of model services, by the package that asks them; another goes by its own name."""
CLOUDS: Final = {
    ".amazonaws.com": "aws.bedrock",
    ".azure.com": "azure.ai.openai",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
}
"""The conventions' names of clouds that have the models of others, by the end of their addresses."""

TOKEN_BOUNDARIES: Final = [float(4**power) for power in range(14)]
SECONDS_BOUNDARIES: Final = [0.01 * 2**power for power in range(14)]
