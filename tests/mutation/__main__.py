"""Change core in thousands of small ways and see whether its tests notice: `python -m tests.mutation [MODULE...]`.

A MODULE is one of core or a package of them (`filter`, `plans.checking`); without any it is all that `mutmut.toml`
names, an hour or two. A run that is stopped goes on where it was: results lie in `.nox/mutated`, by the hash of each
function. When tests have changed, what survived is tried again; `--fresh` begins anew. `--report` runs nothing.

Prints the mutants that survived. Ends with 1 where less than 85% are caught, and, without a MODULE, where one is not
checked. A mutant that runs without end is caught.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.mutation.results import Verdict, modules, results, verdict_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDER = ROOT / ".nox" / "mutated"
LINKS = {
    "src": "core/src",
    "tests": "core/tests",
    "docs": "docs",  # which tests compare with
    "pyproject.toml": "tests/mutation/mutmut.toml",
}
LEAST = 0.85
CAUGHT = (Verdict.KILLED, Verdict.TIMEOUT)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="`filter`, `plans.checking`; default: all")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many mutants at a time")
    parser.add_argument("--report", action="store_true", help="say what is known, and run nothing")
    parser.add_argument("--fresh", action="store_true", help="forget what is known")
    chosen = parser.parse_args(arguments)
    if chosen.fresh:
        shutil.rmtree(FOLDER, ignore_errors=True)
    if not chosen.report:
        prepare()
        status = run(chosen.processes, [name.removeprefix("portico.") for name in chosen.modules])
        if status:
            return status
    return report([name.removeprefix("portico.") for name in chosen.modules])


def prepare() -> None:
    """Lay out the folder that mutmut works in, and take back the results that do not hold any more."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, target in LINKS.items():
        if not (link := FOLDER / name).is_symlink():
            link.symlink_to(ROOT / target)
    # mutmut adds to its copy of the tests, and would keep those that are gone.
    shutil.rmtree(FOLDER / "mutants" / "tests", ignore_errors=True)
    changed = tests_have_changed()
    if changed:
        # Which test runs which function, and how long each takes.
        (FOLDER / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
    for meta in modules(FOLDER).values():
        # mutmut compares times, and a checkout of something else can be older than the mutants. What it knows of
        # each function stays: that goes by a hash.
        os.utime(meta.with_suffix(""), (0, 0))
        known = json.loads(meta.read_text("utf-8"))
        statuses = known["exit_code_by_key"]
        for key, status in statuses.items():
            verdict = verdict_of(status)
            if verdict is Verdict.UNCHECKED or (changed and verdict not in CAUGHT):
                statuses[key] = None
        meta.write_text(json.dumps(known), "utf-8")


def tests_have_changed() -> bool:
    """Tell whether core's tests are others than those that the results are of, and remember them."""
    digest = hashlib.sha256()
    for path in [ROOT / "conftest.py", *sorted((ROOT / "core" / "tests").rglob("*.py"))]:
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    seen = FOLDER / "tests.sha256"
    before = seen.read_text("utf-8") if seen.exists() else ""
    seen.write_text(digest.hexdigest(), "utf-8")
    return before != digest.hexdigest()


def run(processes: int, wanted: list[str]) -> int:
    """Let mutmut check what is not checked yet; return its exit status."""
    command = [sys.executable, str(HERE / "run_mutmut.py"), str(processes), *wanted]
    # The same examples on every run: a mutant that is killed once is killed always.
    environment = {**os.environ, "PORTICO_HYPOTHESIS": os.environ.get("PORTICO_HYPOTHESIS") or "mutation"}
    return subprocess.run(command, cwd=FOLDER, env=environment, check=False).returncode


def report(wanted: list[str]) -> int:
    """Print what became of the mutants, module by module, and return 1 where too few were killed."""
    found = {
        module: list(results(module, meta))
        for module, meta in modules(FOLDER).items()
        if not wanted or any(f"{module}.".startswith(f"{name}.") for name in wanted)
    }
    found = {module: mutants for module, mutants in found.items() if mutants}
    if not found:
        print(f"No results for {', '.join(wanted) or 'any module'} in {FOLDER}.", file=sys.stderr)
        return 2
    width = max(map(len, found))
    print(f"\n{'module':{width}}  mutants  killed  survived  unchecked  share")
    total: Counter[Verdict] = Counter()
    for module, mutants in found.items():
        counts = Counter(verdict for _, verdict in mutants)
        total += counts
        print(row(module, counts, width))
    print(row("all", total, width))
    survived = [
        mutant
        for mutants in found.values()
        for mutant, verdict in mutants
        if verdict in {Verdict.SURVIVED, Verdict.UNTESTED}
    ]
    checked = total.total() - total[Verdict.UNCHECKED]
    for mutant in survived:
        changes = [f"  - {line}" for line in mutant.removed] + [f"  + {line}" for line in mutant.added]
        print("\n".join(["", mutant.place, *changes]))
    wrong: list[str] = []
    if not checked or caught(total) / checked < LEAST:
        wrong.append(f"Fewer than {LEAST:.0%} of the mutants are caught.")
    if total[Verdict.UNCHECKED] and not wanted:
        wrong.append(f"{total[Verdict.UNCHECKED]} are not checked.")
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


def row(name: str, counts: Counter[Verdict], width: int) -> str:
    checked = counts.total() - counts[Verdict.UNCHECKED]
    survived = counts[Verdict.SURVIVED] + counts[Verdict.UNTESTED]
    share = f"{caught(counts) / checked:6.1%}" if checked else "     -"
    return (
        f"{name:{width}}  {counts.total():7}  {caught(counts):6}  {survived:8}  {counts[Verdict.UNCHECKED]:9} {share}"
        + (f"  ({counts[Verdict.TIMEOUT]} ran without end)" if counts[Verdict.TIMEOUT] else "")
    )


def caught(counts: Counter[Verdict]) -> int:
    return sum(counts[verdict] for verdict in CAUGHT)


if __name__ == "__main__":
    sys.exit(main())
