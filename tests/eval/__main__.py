"""Measure quality on a collection, through the real code: `python -m tests.eval [TASK PATH...] [--json]`.

Without a task it is `retrieval`, on the collection that lies here.
Each task is a module of this folder with ``add_arguments(parser)`` and ``run(arguments) -> dict``. Progress goes to
stderr; stdout ends with one JSON object on one line, and with ``--json`` has nothing else.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys

from tests.eval import answers, choosing, handlebars, nestful, openapi, plans, retrieval, selection
from tests.eval.agentdojo import evaluation as agentdojo

TASKS = {
    "agentdojo": agentdojo,
    "answers": answers,
    "choosing": choosing,
    "handlebars": handlebars,
    "nestful": nestful,
    "openapi": openapi,
    "plans": plans,
    "retrieval": retrieval,
    "selection": selection,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.eval", description=__doc__.splitlines()[0])
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, task in TASKS.items():
        of_task = tasks.add_parser(name, description=task.__doc__, help=task.__doc__.splitlines()[0])
        task.add_arguments(of_task)
        of_task.add_argument("--json", action="store_true", help="print the JSON object only")
    given = sys.argv[1:] if arguments is None else arguments
    chosen = parser.parse_args(["retrieval", *given] if given in ([], ["--json"]) else given)
    try:
        result = TASKS[chosen.task].run(chosen)
    except (OSError, ValueError) as error:
        print(f"{chosen.task}: {error}", file=sys.stderr)
        return 1
    if not chosen.json:
        for line in TASKS[chosen.task].describe(result):
            print(line)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    logging.getLogger("portico_openapi").setLevel(logging.ERROR)  # The result says what it lost.
    sys.exit(main())
