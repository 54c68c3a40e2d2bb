"""Indexes a folder with the real parts, in processes that may be killed: one fork for each line that it reads.

The parent has imported everything and opened nothing, so that a child begins to work at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import portico_documents.search
import portico_faiss.store
import portico_host
import portico_wordllama.embeddings
from portico.ports import TextSearch


def application(base: Path) -> portico_host.Application:
    """Wire the folder `docs` of ``base`` as an application does, everything kept below ``base``."""
    passages = {"passage_target": 60, "passage_maximum": 120}
    source = {"use": "documents", "path": str(base / "docs"), "index": str(base / "index"), **passages}
    store = {"use": "faiss", "faiss": {"path": str(base / "vectors")}}
    return portico_host.load(base / "portico.toml", {"search": {"docs": source}, "vectors": store})


async def update(base: Path) -> Any:
    """Bring the index in step."""
    async with application(base).services() as services:
        index = services.get(TextSearch, "docs").index
        assert index is not None
        return await index.update()


def main() -> None:
    """Fork a process that updates for each folder read."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for line in sys.stdin:
        base = Path(json.loads(line))
        child = os.fork()
        if child:
            print(child, flush=True)
            continue
        try:
            asyncio.run(update(base))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


if __name__ == "__main__":
    assert portico_documents.search
    assert portico_faiss.store
    assert portico_wordllama.embeddings
    main()
