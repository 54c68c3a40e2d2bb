"""Run mutmut in this folder on the mutants of some modules that are not checked yet: `run_mutmut.py 2 filter`.

A program of its own, since it must import neither `portico`, which mutmut replaces by the mutated one, nor this
repository's `tests`. mutmut by itself checks what is named again and again, or else everything.
"""

from __future__ import annotations

import sys
from typing import Any


def main(children: int, wanted: list[str]) -> None:
    """Check the mutants of these modules and packages, or all; so many processes at a time."""
    # Here, since pytest reads every file of this folder for examples, and mutmut has an environment of its own.
    from mutmut import __main__ as mutmut
    from mutmut.utils.format_utils import get_module_from_key

    collect = mutmut.collect_source_file_mutation_data

    def collect_wanted(*, mutant_names: Any) -> Any:
        mutants, data = collect(mutant_names=mutant_names)
        return [each for each in mutants if within(get_module_from_key(each[1]))], data

    def within(module: str) -> bool:
        return any(f"{module}.".startswith(f"portico.{name}.") for name in wanted)

    if wanted:
        mutmut.collect_source_file_mutation_data = collect_wanted
    mutmut._run((), children)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
