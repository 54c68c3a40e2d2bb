"""Asks Mermaid itself: `nox -s differential`, or `python -m tests.differential.mermaid.live`.

The versions of package.json are installed by npm into a temporary folder (or taken from `--modules`). Then random plans
are drawn, and Mermaid's parser must find exactly our nodes, boxes and lines, with our labels. `--examples N` sets how
many plans there are, `--seed N` which. Exit code 1 means a difference.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
from tests.support.strategies import plans

from portico.plans import From, Plan, Step, TextOf, plan_to_mermaid

HERE = Path(__file__).parent
NODE = re.compile(r' +(n[0-9]+)[\[(]+"(.*)"[\])]+')
BOX = re.compile(r' +subgraph (n[0-9]+)\["(.*)"\]')
LINE = re.compile(r' +(n[0-9]+) (?:-- "(.*)" -->|(-->)|(-\.->)) (n[0-9]+)')
EVIL = (
    'x"] --> y["', "end", "%%{init: {'theme': 'dark'}}%%", "%% comment", "<script>", "`**bold**`", "#quot;", "&lt;",
    "a\nb --> c", ";", "style a:b#f00;", "classDef x:y#1;", "click n0 call f()", "{{}}", "(((", "1. list", "- item",
    "|", "\\", "---", "n0", "subgraph", "default", "graph", "_self", "@{ shape: rect }", "$$x$$", "fa:fa-car", "o", "x",
)  # fmt: skip


class Parser:
    """Mermaid's parser, in one process of node."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._line()

    def read(self, drawing: str) -> dict[str, Any]:
        """Return what it makes of a drawing."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(drawing) + "\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"node ended with {self._process.wait(10)}; its message is above")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def parser(modules: Path | None) -> Iterator[Parser]:
    """Install Mermaid and start its parser."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        sys.exit("This asks Mermaid, so node and npm must be installed.")
    with tempfile.TemporaryDirectory(prefix="portico-mermaid-") as folder:
        for name in ("package.json", "answer.mjs"):
            shutil.copy(HERE / name, folder)
        if modules is None:
            command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--silent"]
            subprocess.run(command, cwd=folder, check=True, timeout=600)
        else:
            (Path(folder) / "node_modules").symlink_to(modules.resolve())
        process = subprocess.Popen(
            [node, "answer.mjs"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            yield Parser(process)
        finally:
            process.kill()
            process.wait(10)


def expected(drawing: str) -> dict[str, Any]:
    """Return what a drawing is meant to say."""
    nodes, edges, boxes = {}, [], []
    for line in drawing.split("\n"):
        if match := NODE.fullmatch(line):
            nodes[match[1]] = match[2]
        elif match := BOX.fullmatch(line):
            boxes.append([match[1], match[2]])
        elif match := LINE.fullmatch(line):
            edges.append([match[1], match[5], match[2] or "", "dotted" if match[4] else "normal"])
    return {"nodes": nodes, "edges": sorted(edges), "boxes": sorted(boxes)}


def found(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the same of what Mermaid read; it has its own signs around the codes of characters."""
    boxes = [[name, decoded(title)] for name, title, _ in answer["boxes"]]
    inside = {name for name, _ in boxes}
    return {
        "nodes": {name: decoded(text) for name, text in answer["vertices"].items() if name not in inside},
        "edges": sorted([start, end, decoded(text), stroke] for start, end, text, stroke in answer["edges"]),
        "boxes": sorted(boxes),
    }


def decoded(text: str) -> str:
    return text.replace("ﬂ°°", "#").replace("¶ß", ";").replace("<br>", "<br/>").strip()


def evil_plans() -> st.SearchStrategy[Plan]:
    """Plans whose every word means something to Mermaid."""
    words = st.sampled_from(EVIL)

    def steps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Step]]:
        made = st.builds(
            lambda name, function, other, path, after: Step(
                name, function, {"x": TextOf((From(other, (path,)),))}, (after,)
            ),
            words, words | inner, words, words, words,
        )  # fmt: skip
        return st.lists(made, max_size=4, unique_by=lambda step: step.id)

    def plan(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Plan]:
        return st.builds(lambda goal, made, result: Plan(goal, tuple(made), From(result)), words, steps(inner), words)

    return plan(plan(st.nothing()))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--examples", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--modules", type=Path, help="a node_modules folder that has mermaid and jsdom")
    chosen = arguments.parse_args()
    with parser(chosen.modules) as mermaid:

        @seed(chosen.seed)
        @settings(
            max_examples=chosen.examples,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(plans() | evil_plans())
        def compare(plan: Plan) -> None:
            drawing = plan_to_mermaid(plan)
            answer = mermaid.read(drawing)
            assert "error" not in answer, f"Mermaid refuses:\n{drawing}\n{answer['error']}"
            assert found(answer) == expected(drawing), f"Mermaid reads something else:\n{drawing}\n{answer}"

        try:
            compare()
        except AssertionError as error:
            print(error, file=sys.stderr)
            return 1
    print(f"{chosen.examples} plans: Mermaid reads what was drawn")
    return 0


if __name__ == "__main__":
    sys.exit(main())
