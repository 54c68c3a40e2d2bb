"""Two processes on one folder of vectors do no harm to each other."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

WORKER = Path(__file__).with_name("choosing_worker.py")
ROUNDS = 40


async def test_two_processes_with_different_functions_each_choose_as_if_alone(tmp_path: Path) -> None:
    async def choose(seed: int) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(WORKER),
            str(tmp_path / "vectors"),
            str(seed),
            str(ROUNDS),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(120):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode, out.decode().strip(), err.decode()

    for code, out, err in await asyncio.gather(choose(1), choose(2)):
        assert code == 0, err
        assert out == str(ROUNDS)
