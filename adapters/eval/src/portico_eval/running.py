"""Run all cases, several at a time, and keep each result as soon as there is one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from portico.errors import StoreError
from portico.plugins import run_together
from portico_cli.arguments import read_text, write_text
from portico_cli.failures import write_error
from portico_cli.show.layout import count_words
from portico_cli.show.output import plain
from portico_cli.terminal.progress import Progress
from portico_eval.cases import Case
from portico_eval.measuring import Judge, Result, measure

if TYPE_CHECKING:
    from portico import Kernel

_FORMAT = 1
_MOST_BYTES = 1_000_000_000


@dataclass(slots=True)
class Evaluation:
    """Cases, each to be run ``repeats`` times, ``jobs`` runs at a time, and the results so far.

    ``settings`` are JSON that a result depends on, beside its case.
    """

    cases: Sequence[Case]
    repeats: int
    jobs: int
    settings: Any
    results: list[Result] = field(default_factory=list)
    file: Path | None = None

    def keep_in(self, file: Path, *, resume: bool) -> None:
        """Write each result to a line of this file; with ``resume`` take those from it that still hold.

        A run that failed runs again: its service may be there now. Says how many are kept. Raises ``StoreError`` if the
        file cannot be written.
        """
        wanted = {key for _, _, key in self._runs()}
        lines = read_text(str(file), _MOST_BYTES, str(file)).splitlines() if resume and file.exists() else []
        for line in lines:
            with suppress(ValueError, LookupError, TypeError, AttributeError):  # what a kill left
                result: Result = json.loads(line)
                whole = result.keys() == Result.__annotations__.keys()
                if whole and result["key"] in wanted and result["state"] != "failed":
                    wanted.remove(result["key"])
                    self.results.append(result)
        if lines:
            words = f"Kept {len(self.results):,} of {count_words(len(lines), 'result')} in {plain(str(file))}."
            changed = " The others failed, or their case, documents, configuration or options have changed."
            write_error(words + changed * (len(self.results) < len(lines)))
        write_text(file, "\n".join(map(json.dumps, self.results)))
        self.file = file

    async def run(self, kernel: Kernel, judge: Judge | None) -> None:
        """Run what has no result yet."""
        known = {result["key"] for result in self.results}
        waiting = [each for each in self._runs() if each[2] not in known]
        left, total = iter(waiting), self.repeats * len(self.cases)
        progress = Progress("Running the cases", bar=True)
        with progress:

            async def work() -> None:
                for case, repeat, key in left:
                    progress.say(f"Running {case.id}", len(self.results), total)
                    result = await measure(kernel, case, judge, repeat=repeat, key=key)
                    self._keep(result)
                    progress.say(f"Running {case.id}", len(self.results), total)

            await run_together(work() for _ in range(min(self.jobs, len(waiting))))

    def _runs(self) -> Iterator[tuple[Case, int, str]]:
        for repeat in range(self.repeats):
            for case in self.cases:
                said = json.dumps([_FORMAT, case.body, repeat, self.settings], sort_keys=True, default=str)
                yield case, repeat, hashlib.sha256(said.encode()).hexdigest()[:32]

    def _keep(self, result: Result) -> None:
        self.results.append(result)
        if self.file is None:
            return
        try:
            with self.file.open("a", encoding="utf-8") as stream:
                stream.write(f"{json.dumps(result)}\n")
        except OSError as error:
            raise StoreError(f"{self.file} cannot be written: {error.strerror or error}.") from error
