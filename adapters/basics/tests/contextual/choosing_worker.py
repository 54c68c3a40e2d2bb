"""A process that chooses functions again and again on a folder of vectors, and compares with a fresh build.

    python choosing_worker.py FOLDER SEED ROUNDS

Each round it adds, changes or removes functions of its own. It prints one line, how many selections were right, and
fails at the first that was not.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

from portico import FunctionSpec
from portico_basics.contextual.choosing import ContextualSelector, SelectionOptions
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_testkit.fakes.embedding_generator import HashingEmbeddings

WORDS = ("mail", "rain", "song", "door", "bread", "train", "moon", "paper", "stone", "river", "bridge", "candle")


async def choose(folder: Path, seed: int, rounds: int) -> None:
    drawn = random.Random(seed)
    store = FaissVectorStore(FaissSettings(path=folder))
    functions: dict[str, FunctionSpec] = {}

    def selector(place: FaissVectorStore) -> ContextualSelector:
        return ContextualSelector(place, HashingEmbeddings(64), options=SelectionOptions(limit=3))

    chosen = selector(store)
    for _ in range(rounds):
        for _ in range(drawn.randrange(1, 4)):
            name = f"Do-{drawn.choice(WORDS)}{drawn.randrange(4)}"
            if drawn.random() < 0.3:
                functions.pop(name, None)
            else:
                functions[name] = FunctionSpec(name, " ".join(drawn.choices(WORDS, k=3)), {}, {})
        if drawn.random() < 0.15:
            chosen = selector(store)
        specs, context = tuple(functions.values()), [" ".join(drawn.choices(WORDS, k=2))]
        found = await chosen.select(specs, context)
        fresh = await selector(FaissVectorStore()).select(specs, context)
        if found.names != fresh.names:
            sys.exit(f"{found.names} were chosen, a fresh build chooses {fresh.names}")
    await store.aclose()
    print(rounds)


if __name__ == "__main__":
    asyncio.run(choose(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
