"""Stands in for the vendor's client library: import that instead, and delete this file.

As such libraries do, it takes plain dicts, streams words, and raises its own error with a status.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence

__all__ = ["VendorClient", "VendorError"]


class VendorError(Exception):
    """A failure as the vendor tells it, with the status of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class VendorClient:
    """Answers a question with the sentence of the documents that has most of its words."""

    def __init__(self, model: str, api_key: str | None = None) -> None:
        self.model = model
        self._api_key = api_key

    async def stream(
        self, messages: Sequence[dict[str, str]], documents: Sequence[dict[str, str]]
    ) -> AsyncGenerator[str, None]:
        """Yield the answer in pieces; ``[1]`` after a sentence is the ``id`` of the document that it is from."""
        questions = [message["content"] for message in messages if message["role"] == "user"]
        asked = _words(questions[-1]) if questions else set()
        sentences = [
            (len(asked & _words(sentence)), sentence, document["id"])
            for document in documents
            for sentence in re.split(r"(?<=[.!?])\s+", document["text"].strip())
        ]
        score, sentence, number = max(sentences, key=lambda each: each[0], default=(0, "", ""))
        answer = f"“{sentence}” [{number}]" if score else "I answer from sources, and none has anything on this."
        for piece in re.findall(r"\s*\S+|\s+", answer):
            await asyncio.sleep(0)
            yield piece

    async def aclose(self) -> None:
        """Close the connections."""


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
