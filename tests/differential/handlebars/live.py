"""Asks handlebars.js itself: `nox -s differential`, or `python -m tests.differential.handlebars.live`.

The version of package.json is installed by npm into a temporary folder. Then every recorded answer is compared with
what handlebars.js says, and random templates are rendered by both. `--record` writes the answers anew;
`--examples N` sets how many random templates there are, `--seed N` which. Exit code 1 means a difference.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.differential.handlebars.engine import CASES, answer, question, recorded
from tests.differential.handlebars.templates import random_cases

HERE = Path(__file__).parent


class Reference:
    """handlebars.js, in one process of node."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.version: str = self._line()["handlebars"]

    def answer(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Return its answer to a case."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(case) + "\n")
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
def reference() -> Iterator[Reference]:
    """Install handlebars.js and start it."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        sys.exit("This asks handlebars.js, so node and npm must be installed.")
    with tempfile.TemporaryDirectory(prefix="portico-handlebars-") as folder:
        for name in ("package.json", "answer.mjs"):
            shutil.copy(HERE / name, folder)
        command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--silent"]
        subprocess.run(command, cwd=folder, check=True, timeout=300)
        process = subprocess.Popen(
            [node, "answer.mjs"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        try:
            yield Reference(process)
        finally:
            process.kill()
            process.communicate()


def check_recorded(handlebars: Reference, *, record: bool) -> int:
    """Compare the recorded answers, or write them anew; return how many are wrong."""
    wrong = 0
    for path in sorted(CASES.glob("*.json")):
        file = json.loads(path.read_text("utf-8"))
        if record:
            answered = [question(case) | handlebars.answer(question(case)) for case in file["cases"]]
            write(path, {"feature": file["feature"], "handlebars": handlebars.version}, answered)
            continue
        for number, case in enumerate(file["cases"], 1):
            said = handlebars.answer(question(case))
            if said != recorded(case):
                wrong += 1
                print(f"{path.stem}-{number:02}: recorded {recorded(case)}, handlebars.js says {said}")
    return wrong


def write(path: Path, heading: Mapping[str, str], answered: list[dict[str, Any]]) -> None:
    """Write a file of cases, one on a line."""
    lines = ",\n".join("  " + json.dumps(case, ensure_ascii=False) for case in answered)
    head = "".join(f'"{key}": {json.dumps(value)},\n ' for key, value in heading.items())
    path.write_text(f'{{{head}"cases": [\n{lines}\n]}}\n', "utf-8")


def check_random(handlebars: Reference, examples: int, chosen: int) -> int:
    """Render random templates by both; return 1 and print the smallest that differs, if one does."""
    counts = {"text": 0, "error": 0}

    @seed(chosen)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(random_cases())
    def check(case: dict[str, Any]) -> None:
        said = handlebars.answer(case)
        counts["error" if "error" in said else "text"] += 1
        ours = answer(case)
        assert ours == said, f"\n{json.dumps(case, ensure_ascii=False)}\nhandlebars.js: {said}\nours:          {ours}"

    try:
        check()
    except AssertionError as error:
        print(f"A random template differs (seed {chosen}): {error}")
        return 1
    print(f"{sum(counts.values())} random templates alike: {counts['text']} rendered, {counts['error']} refused")
    return 0


def main() -> int:
    """Ask, compare and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the recorded answers anew")
    parser.add_argument("--examples", type=int, default=500, help="random templates (default 500)")
    parser.add_argument("--seed", type=int, default=0, help="which random templates (default 0)")
    chosen = parser.parse_args()
    with reference() as handlebars:
        wrong = check_recorded(handlebars, record=chosen.record)
        print(f"handlebars.js {handlebars.version}: {wrong} recorded answers are wrong")
        different = check_random(handlebars, chosen.examples, chosen.seed) if chosen.examples else 0
    return 1 if wrong or different else 0


if __name__ == "__main__":
    sys.exit(main())
