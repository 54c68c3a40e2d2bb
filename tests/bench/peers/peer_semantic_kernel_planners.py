"""Semantic Kernel's sequential planner, in the last version that has it: it reads plans in the same XML."""

from collections.abc import Mapping

from tests.bench.peers import work
from tests.bench.peers.work import Call, Peer, each


async def calls(address: str) -> Mapping[str, Call]:
    """Return the work of its one row."""
    from semantic_kernel import Kernel
    from semantic_kernel.functions import KernelPlugin, kernel_function
    from semantic_kernel.planners.sequential_planner.sequential_planner_parser import SequentialPlanParser

    kernel = Kernel()
    functions = [kernel_function(function) for function in (work.upper, work.lower, work.join, work.repeat)]
    kernel.add_plugin(KernelPlugin("Text", functions=functions))
    text = work.PLAN.replace("Text.", "Text-")

    async def plan() -> object:
        made = SequentialPlanParser.to_plan_from_xml(text, "Shout", kernel)
        return str(await made.invoke(kernel))

    return {"plan": each(plan)}


PEER = Peer("Semantic Kernel", ("semantic-kernel==1.32.2", "openai<2"), "", "", calls, "the last version with planners")
