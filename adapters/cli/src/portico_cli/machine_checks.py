"""What `portico doctor` says of services that one machine has for itself, where workers may be on several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from portico.errors import PorticoError
from portico.ports.run_store import RunStore
from portico.ports.text_search import TextSearch
from portico.ports.vector_store import VectorStore
from portico_cli.findings import Finding
from portico_cli.job_places import queue_of
from portico_host.packages import port_named

if TYPE_CHECKING:
    from portico_host import HostServices

__all__ = ["on_one_machine"]

T = TypeVar("T")

_JOURNAL = (
    "this journal is of this machine only: a worker on another one writes its own. Its runs are not listed here, and "
    "of a step with effects that broke off here it does not know."
)
_VECTORS = (
    "these vectors are kept on this machine only: what a worker on another one embeds, `portico index` does not find."
)
_MEND = (
    'Choose one that all machines reach: `pip install portico-postgres`, and `use = "postgres"` under [{}]. Where all '
    "workers are on this machine, leave it."
)


def on_one_machine(services: HostServices) -> Iterator[Finding]:
    """Note the journal and the vector store of one machine, where the queue is one that several reach.

    Each says so itself, by an attribute ``one_machine``; a queue that says nothing is taken for one of this machine.
    """
    try:
        queue = queue_of(services)
    except PorticoError:
        return  # that it cannot be made is told already
    if queue is None or getattr(queue, "one_machine", True):
        return
    for port, means in ((RunStore, _JOURNAL), (VectorStore, _VECTORS)):
        info = port_named(port.__name__)
        for name, service in _made(services, port, services.names(port)[:1]):
            # Vectors in memory are each process's own, wherever it is, and no worker is asked for them.
            kept = getattr(service, "one_machine", False) and getattr(service, "persistent", True)
            if kept and (port is RunStore or _indexes(services)):
                cause = f"The queue of the runner {queue.name!r} is open to workers on any machine, and {means}"
                yield Finding("warn", f"{info.noun} {name}", cause, _MEND.format(info.table))


def _indexes(services: HostServices) -> bool:
    """Tell whether a source keeps an index, which workers help with."""
    return any(each.index is not None for _, each in _made(services, TextSearch, services.names(TextSearch)))


def _made(services: HostServices, port: Callable[..., T], names: Iterable[str]) -> Iterator[tuple[str, T]]:
    """Make services; that one cannot be made is told already."""
    for name in names:
        try:
            yield name, services.get(port, name)
        except PorticoError:
            continue
