"""PackageKit passes a package that is as it should be, and finds each of many that are broken, at its test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from portico.ports import PORTS as PORTS_OF_CORE
from portico_testkit._package_kits import KITS as KITS_OF_PORTS
from portico_testkit._package_kits import folder_of_tests
from portico_testkit._package_services import StandIns
from portico_testkit._package_sources import folded
from portico_testkit.kit_failures import kit_failures, names_of_tests
from portico_testkit.package import PackageKit
from portico_testkit.pytest_plugin import is_kit
from portico_testkit.tasks import with_patience

README = "Search the catalogue of Acme. " * 5
METADATA = f"""Metadata-Version: 2.4
Name: portico-acme
Version: 1.0
Summary: Search Acme.
License-Expression: Apache-2.0
Classifier: Typing :: Typed
Requires-Python: >=3.11
Requires-Dist: portico-core>=0.1
Requires-Dist: attrs>=24.2
Requires-Dist: hypothesis; extra == "fuzz"

{README}
"""
PLUGIN = """from portico.registration import Registration


def portico_text_searches():
    return [
        Registration(
            name="acme",
            factory="portico_acme.search:AcmeSearch",
            settings="portico_acme.config:AcmeSettings",
            summary="Acme.",
        )
    ]
"""
CONFIG = """from __future__ import annotations

from attrs import field, frozen

from portico.registration import Secret


@frozen
class AcmeSettings:
    api_key: Secret = field(metadata={"doc": "The key."})
    language: str = field(default="en", metadata={"doc": "The language."})
"""
SEARCH = """import asyncio
import os
import threading
from pathlib import Path

from portico_acme.config import AcmeSettings

LEFT = []


class AcmeSearch:
    name = "acme"

    def __init__(self, settings: AcmeSettings, services: object) -> None:
        self._settings = settings
        self._services = services

    async def aclose(self) -> None:
        await asyncio.sleep(0)
"""
ENTRY = "[portico]\nacme = portico_acme._plugin\n"
SDK = """import atexit
import logging
import socket
import sys
import warnings

socket.socket().close()
atexit.register(print, end="")
logging.basicConfig()
warnings.filterwarnings("ignore", "made up")
sys.path.append("elsewhere")
sum(i * i for i in range(10**7))


class Client:
    def __init__(self):
        socket.socket().close()
"""
TESTS = """from portico_testkit.text_search import TextSearchKit


class TestAcmeSearch(TextSearchKit):
    pass
"""
MADE = "        self._services = services\n"
CLOSED = "        await asyncio.sleep(0)\n"


@dataclass(frozen=True)
class Broken:
    """How a package differs from the good one, and what is said of it by the only test, or the first, that fails."""

    test: str
    said: str
    files: Mapping[str, str] = field(default_factory=dict)
    metadata: Callable[[str], str] = str
    entry_points: str = ENTRY
    others: frozenset[str] = frozenset()


def replaced(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def in_metadata(test: str, said: str, old: str, new: str = "") -> Broken:
    return Broken(test, said, metadata=lambda text: replaced(text, old, new))


def in_plugin(test: str, said: str, old: str, new: str, *others: str) -> Broken:
    return Broken(test, said, {"_plugin.py": replaced(PLUGIN, old, new)}, others=frozenset(others))


def in_config(test: str, said: str, old: str, new: str, *others: str, language: str = "str") -> Broken:
    text = replaced(CONFIG, old, new).replace("language: str", f"language: {language}")
    return Broken(test, said, {"config.py": text}, others=frozenset(others))


def at_import(said: str, statement: str) -> Broken:
    return Broken(IMPORTED, said, {"search.py": f"{SEARCH}\n\n{statement}\n"})


def in_factory(said: str, statement: str, *others: str) -> Broken:
    made = replaced(SEARCH, MADE, f"{MADE}        {statement}\n")
    return Broken("a_factory_opens_nothing", said, {"search.py": made}, others=frozenset(others))


def in_search(test: str, said: str, code: str) -> Broken:
    return Broken(test, said, {"search.py": f"{SEARCH}\n{code}"})


def when_closed(said: str, statement: str) -> Broken:
    closed = replaced(SEARCH, CLOSED, f"        {statement}\n")
    return Broken("a_service_leaves_nothing_behind_when_it_is_closed", said, {"search.py": closed})


LEAVES = "a_service_leaves_nothing_behind_when_it_is_closed"
OPENS = "a_factory_opens_nothing"
FOUND = "factories_and_settings_are_where_it_says"
LISTED = "listing_it_imports_no_vendor"
MISSPELT = "a_misspelt_setting_is_refused_with_the_nearest"
TYPED = "every_setting_has_a_type_and_says_what_it_is"
SHOWN = "secrets_are_not_shown"
REQUIRES = "it_requires_core_and_lets_others_do_so_too"
DECLARED = "it_imports_only_what_it_declares"
COMPLETE = "its_metadata_is_complete"
CHEAP = "listing_it_is_cheap"
PORTS = "it_is_for_the_ports_as_they_are_here"
NAMED = "its_entry_point_is_named_for_it"
HOOKS = "its_hooks_are_known_and_return_registrations"
IMPORTED = "nothing_is_done_at_import"
STOPPED = "it_lets_itself_be_stopped"
ALONE = "it_does_not_hold_up_others"
CALLED = "a_service_has_the_name_that_it_is_registered_by"
OWN = "its_names_are_its_own"
SETTABLE = "every_setting_can_be_set_in_a_file"
KITS = "each_port_has_its_kit"
PROBED = frozenset({LISTED, CHEAP, IMPORTED})
EVERY = frozenset(name.removeprefix("test_") for name in names_of_tests(PackageKit))
NOT_PROBED = EVERY - PROBED
ADVICE = (
    'a description of one line (description = …); which Python it runs on (requires-python = ">=3.11"); '
    'a README of at least 20 words (readme = "README.md")'
)

BROKEN = {
    "no summary": in_metadata(COMPLETE, "a description", "Summary: Search Acme.\n"),
    "no licence": in_metadata(COMPLETE, "a licence", "License-Expression: Apache-2.0\n"),
    "any Python": in_metadata(COMPLETE, "requires-python", "Requires-Python: >=3.11\n"),
    "no README": in_metadata(COMPLETE, "README", README, "Acme."),
    "an odd version": in_metadata("its_version_is_one", "Invalid version: 'new'", "Version: 1.0", "Version: new"),
    "no classifier": in_metadata("it_is_typed", "add the classifier", "Classifier: Typing :: Typed\n"),
    "no py.typed": Broken("it_is_typed", "there is no py.typed", {"py.typed": "-"}),
    "no core": Broken(
        REQUIRES,
        "add it to its dependencies",
        metadata=lambda text: replaced(text, "Requires-Dist: portico-core>=0.1\n", ""),
        others=frozenset({DECLARED}),
    ),
    "core pinned": in_metadata(REQUIRES, "portico-core==0.1: give a lower bound", "core>=0.1", "core==0.1"),
    "core bounded": in_metadata(REQUIRES, "portico-core<2: give a lower bound", "core>=0.1", "core>=0.1,<2"),
    "the host": in_metadata(
        REQUIRES, "portico-host, which is the application", "attrs>=24.2", "attrs\nRequires-Dist: portico-host"
    ),
    "the command line": in_metadata(
        REQUIRES, "requires portico, which", "attrs>=24.2", "attrs\nRequires-Dist: portico"
    ),
    "an entry point of another name": Broken(
        NAMED,
        "'acme_search', not 'acme'",
        entry_points="[portico]\nacme_search = portico_acme._plugin\n",
        others=frozenset({MISSPELT}),
    ),
    "an entry point that is a function": Broken(
        NAMED,
        "is to be a module",
        entry_points="[portico]\nacme = portico_acme._plugin:portico_text_searches\n",
        others=frozenset({MISSPELT}),
    ),
    "two entry points": Broken(
        NAMED,
        "several",
        entry_points="[portico]\nacme = portico_acme._plugin\nAcme = portico_acme._plugin\n",
        others=frozenset({MISSPELT}),
    ),
    "an entry point that leads nowhere": Broken(
        NAMED,
        "'acme' leads to portico_acme.plugin, and there is no such module. Correct [project.entry-points.portico]",
        entry_points="[portico]\nacme = portico_acme.plugin\n",
    ),
    "a package that is not there": Broken(
        NAMED,
        "'acme' leads to portico_acmee._plugin, and there is no such module",
        entry_points="[portico]\nacme = portico_acmee._plugin\n",
    ),
    "a command that is not there": Broken(
        "its_commands_can_be_loaded",
        "the command 'polish': AttributeError",
        entry_points=f"{ENTRY}[portico.commands]\npolish = portico_acme.search:polish\n",
    ),
    "a vendor imported": in_plugin(LISTED, "hypothesis (by ", "from portico", "import hypothesis\nfrom portico", CHEAP),
    "a vendor imported by a hook": in_plugin(
        LISTED, "hypothesis (by ", "    return", "    import hypothesis\n    return", CHEAP
    ),
    "a vendor imported by the package": Broken(
        LISTED, "/portico_acme/__init__.py:1)", {"__init__.py": "import hypothesis\n"}, others=frozenset({CHEAP})
    ),
    "something printed": in_plugin(LISTED, "prints 'Hello", "    return", "    print('Hello')\n    return"),
    "much imported": in_plugin(
        CHEAP, "modules", "from portico", "import asyncio, sqlite3, xmlrpc.client\nfrom portico"
    ),
    "a sum when it is listed": in_plugin(
        CHEAP, "million squares", "from portico", "sum(i * i for i in range(10**7))\nfrom portico", IMPORTED
    ),
    "a hook that computes": in_plugin(
        CHEAP, "million squares", "    return", "    sum(i * i for i in range(10**7))\n    return", IMPORTED
    ),
    "a sum at import": at_import("million squares", "SUM = sum(i * i for i in range(10**7))"),
    "a wait when it is listed": in_plugin(
        IMPORTED, "_plugin.py:2 waits", "from portico", "import time\ntime.sleep(0.01)\nfrom portico"
    ),
    "a wait at import": at_import("search.py:23 waits", "from time import sleep\nsleep(0.01)"),
    "logging at import": at_import(
        "search.py:23 sets up logging for everybody (addHandler of the root logger)",
        "import logging\nlogging.basicConfig()",
    ),
    "the level of all logs at import": at_import(
        "sets up logging for everybody (setLevel", "import logging\nlogging.getLogger().setLevel('DEBUG')"
    ),
    "warnings hidden at import": at_import(
        "search.py:23 changes which warnings everybody sees (warnings.filterwarnings)",
        "import warnings\nwarnings.filterwarnings('ignore', 'made up')",
    ),
    "a signal at import": at_import(
        "search.py:23 takes a signal for itself", "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)"
    ),
    "a folder on the path at import": at_import(
        "search.py:23 changes where everybody's modules are found", "import sys\nsys.path.append('elsewhere')"
    ),
    "a path of its own at import": at_import("modules are found", "import sys\nsys.path += ['elsewhere']"),
    "another path at import": at_import(
        "a module sets sys.path anew", "import sys\nsys.path = ['elsewhere', *sys.path]"
    ),
    "something for the end at import": at_import(
        "search.py:23 has something done at the end", "import atexit\natexit.register(print)"
    ),
    "a hook that raises": in_plugin(
        LISTED,
        "ZeroDivisionError",
        "    return [",
        "    1 / 0\n    return [",
        HOOKS,
        FOUND,
        OWN,
        TYPED,
        SETTABLE,
        SHOWN,
        OPENS,
        LEAVES,
        MISSPELT,
        PORTS,
        KITS,
    ),
    "a hook that is misspelt": in_plugin(HOOKS, "is it portico_text_searches?", "text_searches", "text_serches"),
    "a hook that is no function": in_plugin(
        HOOKS, "portico_planners is not a function", "def", "portico_planners = []\n\n\ndef"
    ),
    "a hook that returns one": Broken(
        HOOKS, "not a list", {"_plugin.py": PLUGIN.replace("[\n", "(\n").replace("]\n", ")\n")}
    ),
    "a hook that returns names": in_plugin(
        HOOKS, "what is no Registration: ['acme']", "        Registration(", "        'acme',\n        Registration("
    ),
    "a name twice": Broken(
        HOOKS, "a name twice: ['acme', 'acme']", {"_plugin.py": PLUGIN.replace("    ]\n", "    ] * 2\n")}
    ),
    "nothing registered": Broken(HOOKS, "registers nothing", {"_plugin.py": ""}),
    "a name that another package has": Broken(
        OWN,
        "the text search 'acme' is registered by portico-neighbour too. Register it by another name.",
        {
            "../portico_neighbour/_plugin.py": PLUGIN,
            "../portico_neighbour-1.0.dist-info/METADATA": METADATA.replace("portico-acme", "portico-neighbour"),
            "../portico_neighbour-1.0.dist-info/entry_points.txt": ENTRY.replace("acme", "neighbour"),
            "../portico_damaged-1.0.dist-info/METADATA": METADATA.replace("portico-acme", "portico-damaged"),
            "../portico_damaged-1.0.dist-info/entry_points.txt": "[portico]\nacme\n[portico\nacme = nowhere\n",
            "../portico_remnant-1.0.dist-info/RECORD": "",
        },
    ),
    "for another version": in_plugin(
        PORTS, "is for version 7 of its port; core has 1", "summary=", "port_version=7, summary="
    ),
    "a factory that is not there": in_plugin(FOUND, "AcmeSerch", "AcmeSearch", "AcmeSerch", OPENS, LEAVES),
    "a factory that is a constant": in_plugin(
        FOUND, "cannot be called", "search:AcmeSearch", "search:__name__", OPENS, LEAVES
    ),
    "a factory of settings alone": Broken(
        FOUND,
        "(settings, services)",
        {"search.py": replaced(SEARCH, ", services: object", "").replace(MADE, "")},
        others=frozenset({OPENS, LEAVES}),
    ),
    "settings that are not there": in_plugin(
        FOUND, "AcmeSetings", "AcmeSettings", "AcmeSetings", TYPED, SETTABLE, SHOWN, OPENS, LEAVES, MISSPELT
    ),
    "a setting without a word": in_config(TYPED, "to language", ', metadata={"doc": "The language."}', ""),
    "a setting without a type": in_config(
        TYPED, "language may be anything", "@frozen", "from typing import Any\n\n\n@frozen", language="Any"
    ),
    "settings that are no class of fields": in_config(
        TYPED, "neither an attrs class nor a dataclass", "@frozen\n", "", SETTABLE, SHOWN, OPENS, LEAVES, MISSPELT
    ),
    "a type that is not there": in_config(
        TYPED, "Nowhere", "language: str", "language: Nowhere", SETTABLE, SHOWN, OPENS, LEAVES, MISSPELT
    ),
    "a key that is text": in_config(
        SHOWN, "make it a portico.registration.Secret: api_key", "api_key: Secret", "api_key: str"
    ),
    "a key that is shown": in_config(
        SHOWN, "the repr of AcmeSettings shows a secret", '"The key."}', '"The key."}, repr=lambda key: key.reveal()'
    ),
    "a setting that the host cannot read": in_config(
        MISSPELT, "<class 'complex'>", "language: str", "language: complex", SETTABLE
    ),
    "a setting that no file can hold": in_config(
        SETTABLE, "of the type: language: <class 'complex'>", "language: str", "language: complex", MISSPELT
    ),
    "settings of which no file can hold one": in_config(
        SETTABLE, "of the type: language: <class 'complex'>", "language: str", "language: set[complex]", MISSPELT
    ),
    "a setting that is code": in_config(
        SETTABLE,
        "of the type: language: collections.abc.Callable",
        "@frozen",
        "from collections.abc import Callable\n\n\n@frozen",
        MISSPELT,
        language="Callable[[], str]",
    ),
    "settings within settings that no file can hold": in_config(
        SETTABLE,
        "of the type: language.weight: <class 'decimal.Decimal'>",
        "@frozen",
        "from decimal import Decimal\n\n\n@frozen\nclass Weight:\n    weight: Decimal = Decimal(1)\n\n\n@frozen",
        MISSPELT,
        language="dict[str, Weight]",
    ),
    "settings within settings of a type that is not there": in_config(
        SETTABLE,
        "the settings of the text search 'acme': Deep: name 'Nowhere' is not defined",
        "@frozen",
        "@frozen\nclass Deep:\n    weight: Nowhere = 1\n\n\n@frozen",
        MISSPELT,
        language="Deep | None",
    ),
    "choices that no file can name": in_config(
        SETTABLE,
        "of the type: language: <enum 'Language'>",
        "@frozen",
        "from enum import Enum\n\n\nclass Language(Enum):\n    ENGLISH = object()\n\n\n@frozen",
        MISSPELT,
        language="Language",
    ),
    "a default that does not fit": in_config(
        SETTABLE,
        "the JSON Schema of AcmeSettings, for editors: the default of language: 5 is not of type 'string'",
        'default="en"',
        "default=5",
    ),
    "limits that are none": in_config(
        SETTABLE,
        "the JSON Schema of AcmeSettings, for editors: TypeError: the limits",
        '"The language."}',
        '"The language.", "limits": 5}',
        MISSPELT,
    ),
    "a dependency that is not declared": Broken(
        DECLARED, "numpy (portico_acme/search.py:1)", {"search.py": f"import numpy\n{SEARCH}"}
    ),
    "one that only a function imports": Broken(
        DECLARED, "pytest (portico_acme/search.py:", {"search.py": f"{SEARCH}\n\ndef later():\n    import pytest\n"}
    ),
    "the application imported": Broken(
        DECLARED,
        "portico_host (portico_acme/search.py:",
        {"search.py": f"{SEARCH}\n\ndef later():\n    import portico_host\n"},
    ),
    "the environment read at import": at_import(
        "search.py:22 reads the environment (ACME_KEY)", "KEY = os.environ.get('ACME_KEY')"
    ),
    "the home folder looked for at import": at_import("reads the environment (HOME)", "HOME = Path.home()"),
    "a thread that goes on at import": at_import("starts a thread", "threading.Timer(0.1, print).start()"),
    "a low thread at import": at_import(
        "starts a thread", "import _thread\n_thread.start_new_thread(print, (), {'end': ''})"
    ),
    "a thread at import": at_import("starts a thread", "threading.Thread(target=print).start()"),
    "a socket at import": at_import("search.py:23 opens a socket", "import socket\nsocket.socket().close()"),
    "a process at import": at_import(
        "starts a process", "import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''])"
    ),
    "an event loop at import": at_import("starts an event loop", "asyncio.new_event_loop().close()"),
    "a client of a vendor at import": Broken(
        IMPORTED,
        "search.py:2 opens a socket",
        {"search.py": f"import acme_sdk\nCLIENT = acme_sdk.Client()\n{SEARCH}", "../acme_sdk.py": SDK},
        others=frozenset({DECLARED}),
    ),
    "a file written at import": at_import("search.py:22 writes ", "Path(__file__).with_name('seen').write_text('x')"),
    "a folder made at import": at_import("changes files", "Path(__file__).with_name('cache').mkdir()"),
    "a factory that starts a thread": in_factory(
        "search.py:17 starts a thread", "threading.Thread(target=print).start()"
    ),
    "a factory that starts a task": in_factory(
        "starts the tasks ['watcher']", "self.task = asyncio.create_task(asyncio.sleep(30), name='watcher')", LEAVES
    ),
    "a factory that waits": in_factory("search.py:17 waits", "import time; time.sleep(0.01)"),
    "a factory that opens a socket": in_factory("opens a socket", "import socket; socket.socket().close()"),
    "a factory that reads a file": in_factory("search.py:17 reads ", "Path(__file__).read_text()"),
    "a factory that is asynchronous": Broken(
        OPENS,
        "is asynchronous; nobody awaits it",
        {
            "search.py": f"{SEARCH}\n\nasync def made(settings, services):\n    ...\n",
            "_plugin.py": replaced(PLUGIN, "search:AcmeSearch", "search:made"),
        },
        others=frozenset({LEAVES}),
    ),
    "a service of another name": Broken(
        CALLED,
        "the text search 'acme' says that its name is 'acne': name = 'acme'",
        {"search.py": replaced(SEARCH, 'name = "acme"', 'name = "acne"')},
    ),
    "a service that shows its key": Broken(
        OPENS,
        "shows a secret",
        {"search.py": f"{SEARCH}\n    def __repr__(self):\n        return self._settings.api_key.reveal()\n"},
    ),
    "a service that cannot be closed": when_closed("raises OSError: Broken pipe", "raise OSError('Broken pipe')"),
    "a service that closes at once": Broken(
        LEAVES,
        "aclose of the text search 'acme' is not asynchronous",
        {"search.py": replaced(SEARCH, "async def aclose", "def aclose").replace(CLOSED, "        pass\n")},
    ),
    "cancellation swallowed": in_search(
        STOPPED,
        "search.py:24 catches CancelledError and goes on",
        "async def found(call):\n    try:\n        return await call()\n"
        "    except (OSError, asyncio.CancelledError):\n        return []\n",
    ),
    "everything caught": in_search(
        STOPPED,
        "search.py:24 catches everything and goes on",
        "async def found(call):\n    try:\n        return await call()\n    except:\n        return []\n",
    ),
    "all errors there are caught": in_search(
        STOPPED,
        "search.py:24 catches BaseException and goes on",
        "def found(call):\n    try:\n        return call()\n    except BaseException:\n        return []\n",
    ),
    "a finally that is left": in_search(
        STOPPED,
        "search.py:26 leaves a finally by return and goes on. Raise it again, catch Exception, or let a finally",
        "async def found(call):\n    try:\n        await call()\n    finally:\n"
        "        if LEFT:\n            return 1\n",
    ),
    "a finally that is left for the next round": in_search(
        STOPPED,
        "search.py:26 leaves a finally by continue and goes on",
        "async def found(call):\n    while LEFT:\n        try:\n            await call()\n        finally:\n"
        "            continue\n",
    ),
    "cancellation suppressed": in_search(
        STOPPED,
        "search.py:24 suppresses CancelledError and goes on",
        "from contextlib import suppress\n\nasync def found(call):\n    with suppress(asyncio.CancelledError):\n"
        "        await call()\n",
    ),
    "a wait that holds up the loop": in_search(
        ALONE,
        "search.py:24 calls time.sleep in found: await asyncio.sleep, or asyncio.to_thread",
        "from time import sleep as wait\n\nasync def found():\n    wait(1)\n",
    ),
    "a request that holds up the loop": in_search(
        ALONE,
        "search.py:24 calls urllib.request.urlopen in found: take an HttpClient",
        "import urllib.request\n\nasync def found():\n    urllib.request.urlopen('https://acme.example')\n",
    ),
    "a process that holds up the loop": in_search(
        ALONE,
        "calls subprocess.run in found",
        "import subprocess\n\nasync def found():\n    subprocess.run(['true'])\n",
    ),
    "the kit of no port": Broken(
        KITS,
        "subclasses TextSearchKit, for the text search 'acme': from portico_testkit.text_search import TextSearchKit",
        {"../tests/test_contract.py": "class TestAcmeSearch:\n    pass\n"},
    ),
    "the kit of another port": Broken(
        KITS,
        "subclasses TextSearchKit",
        {"../tests/test_contract.py": TESTS.replace("text_search", "planner").replace("TextSearch", "Planner")},
    ),
    "a kit that no test subclasses": Broken(
        KITS,
        "subclasses TextSearchKit",
        {"../tests/test_contract.py": TESTS.replace("TestAcme", "Acme")},
    ),
    "a service that leaves a socket": when_closed(
        "leaves 1 sockets open", "import socket; LEFT.append(socket.socket())"
    ),
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, for packages that are there during a test only."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name in [name for name in sys.modules if name.partition(".")[0] == "portico_acme"]:
        # Other tests have one of that name too.
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(folder)
    # Modules of equal names would be taken from the bytecode of the test before.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] in {"portico_acme", "acme_sdk"}]:
        for left in getattr(sys.modules.pop(name), "LEFT", ()):
            left.close()


def install(site: Path, broken: Broken | None = None) -> None:
    """Put the package there as pip does; a file with ``-`` is left out."""
    broken = broken or Broken("", "")
    files = {"__init__.py": "", "py.typed": "", "_plugin.py": PLUGIN, "config.py": CONFIG, "search.py": SEARCH}
    files["../tests/test_contract.py"] = TESTS
    (site / "tests").mkdir()
    package = site / "portico_acme"
    package.mkdir()
    for name, text in {**files, **broken.files}.items():
        if text != "-":
            (package / name).resolve().parent.mkdir(exist_ok=True)
            (package / name).write_text(text, "utf-8")
    info = site / "portico_acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(broken.metadata(METADATA), "utf-8")
    (info / "entry_points.txt").write_text(broken.entry_points, "utf-8")


class AcmeKit(PackageKit):
    distribution = "portico-acme"


async def failures(tmp_path: Path, kit: type = AcmeKit, *, without: frozenset[str] = frozenset()) -> dict[str, str]:
    """Run the kit, without what needs the host where the host is not installed."""
    left_out = without if find_spec("portico_host") else without | {MISSPELT}
    tests = [name for name in names_of_tests(kit) if name.removeprefix("test_") not in left_out]
    fixtures: dict[str, Callable[[], Any]] = {"services": StandIns, "tmp_path": lambda: tmp_path}
    here = type(kit.__name__, (kit,), {"tests": tmp_path / "site" / "tests"})
    with with_patience(0.1):
        found = await kit_failures(here, fixtures, tests)
    return {name.removeprefix("test_"): said for name, said in found.items()}


async def test_a_package_that_is_as_it_should_be_passes(site: Path, tmp_path: Path) -> None:
    install(site)
    assert await failures(tmp_path) == {}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_package_fails_at_its_test(site: Path, tmp_path: Path, case: str) -> None:
    broken = BROKEN[case]
    if broken.test == MISSPELT or "JSON Schema" in broken.said:
        pytest.importorskip("portico_host")
    install(site, broken)
    # A process of its own for each would take its time, and the settings and services have no part in them.
    imported = broken.test in PROBED or "_plugin.py" in broken.files
    # What is done to a whole process is done in the one of the probe, and not in this one.
    left_out = NOT_PROBED if broken.test in {CHEAP, IMPORTED} else frozenset() if imported else PROBED
    if "there is no such module" in broken.said:
        left_out = EVERY - {broken.test}  # they are skipped, which a test below sees to
    found = await failures(tmp_path, without=left_out)
    assert broken.test in found, f"only these fail: {found}"
    assert broken.said in found[broken.test]
    # What cannot be made has no name either.
    others = broken.others | ({CALLED} if LEAVES in broken.others else set())
    assert found.keys() - others <= {broken.test}, "other tests fail too"


CAREFUL = """
import concurrent.futures
import logging
import subprocess
import sys
import time
import warnings
from contextlib import suppress

logging.getLogger(__name__).addHandler(logging.NullHandler())
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    warnings.warn("of a vendor", DeprecationWarning)
TABLE = {number: number * number for number in range(1000)}


async def raised(call):
    try:
        return await call()
    except asyncio.CancelledError:
        LEFT.clear()
        raise
    except BaseException as error:
        LEFT.append(error)
        raise OSError from error


async def kept(call, answer):
    try:
        answer.set_result(await call())
    except BaseException as error:
        answer.set_exception(error)


async def ended(task):
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def errors_alone(call):
    with suppress(Exception):
        await call()
    try:
        await call()
    except Exception:
        return None


async def of_a_pool(future):
    try:
        return await future
    except concurrent.futures.CancelledError:  # which is not asyncio's
        return None


async def tidied(call, requests):
    try:
        return await call(requests.get("x"), session.get("y"))
    finally:
        for one in LEFT:
            if one is None:
                break
        def last():
            return LEFT


def seen(task):
    try:
        task.result()
    except asyncio.CancelledError:
        return None


async def in_a_thread():
    def wait():
        time.sleep(0.1)
        subprocess.run(["true"])

    await asyncio.to_thread(time.sleep, 0.1)
    await asyncio.to_thread(lambda: time.sleep(0.1))
    return wait


def program():
    time.sleep(0.1)
    try:
        asyncio.run(in_a_thread())
    except BaseException:
        sys.exit(1)
"""


async def test_a_package_that_takes_care_passes(site: Path, tmp_path: Path) -> None:
    install(site, Broken("", "", {"search.py": f"{SEARCH}\n{CAREFUL}"}))
    assert await failures(tmp_path) == {}


async def test_what_a_vendor_does_while_it_is_imported_is_the_vendors(site: Path, tmp_path: Path) -> None:
    install(site, Broken("", "", {"search.py": f"import acme_sdk\n{SEARCH}", "../acme_sdk.py": SDK}))
    assert await failures(tmp_path, without=NOT_PROBED) == {}


@pytest.mark.parametrize(
    "tests",
    [
        {"test_acme.py": "from portico_testkit.text_search import TextSearchKit as Kit\nclass TestAcme(Kit): ..."},
        {"test_acme.py": "import portico_testkit.text_search as kits\nclass TestAcme(kits.TextSearchKit): ..."},
        {"test_acme.py": "from portico_testkit import text_search\nclass TestAcme(text_search.TextSearchKit): ..."},
        {"acme_test.py": TESTS.replace("TextSearchKit", "WebSearchKit").replace("text_search", "web_search")},
        {"deep/test_acme.py": f"{TESTS.replace('TestAcme', '_Acme')}\nclass TestIt(_AcmeSearch): ..."},
        {
            "contract.py": TESTS.replace("TestAcmeSearch", "Contract"),
            "test_acme.py": "from contract import Contract\nclass TestAcme(Contract[int]): ...",
            "test_no_python.py": "def (",
        },
    ],
    ids=["renamed", "as a module", "of a package", "a kit of a kit", "a base", "a base elsewhere"],
)
async def test_a_kit_may_be_subclassed_in_any_way(site: Path, tmp_path: Path, tests: dict[str, str]) -> None:
    files = {f"../tests/{name}": text for name, text in tests.items()}
    install(site, Broken("", "", {"../tests/test_contract.py": "", **files}))
    assert await failures(tmp_path, without=PROBED) == {}


def test_the_tests_of_a_package_are_those_beside_its_project_file(tmp_path: Path) -> None:
    deep = tmp_path / "acme" / "tests" / "unit" / "search"
    deep.mkdir(parents=True)
    assert folder_of_tests(deep / "test_package.py") == deep
    (tmp_path / "acme" / "pyproject.toml").touch()
    assert folder_of_tests(deep / "test_package.py") == tmp_path / "acme" / "tests"
    assert folder_of_tests(tmp_path / "acme" / "test_package.py") == tmp_path / "acme"


def test_every_port_of_core_has_a_kit() -> None:
    assert set(KITS_OF_PORTS) == {port.name for port in PORTS_OF_CORE}
    for kit in KITS_OF_PORTS.values():
        module, _, name = kit.rpartition(".")
        assert is_kit(getattr(import_module(module), name))


def test_every_test_of_the_kit_is_shown_to_find_something() -> None:
    assert {f"test_{broken.test}" for broken in BROKEN.values()} == set(names_of_tests(PackageKit))


async def test_a_package_that_is_not_installed_is_told_as_that(tmp_path: Path) -> None:
    said = await failures(tmp_path, type("ElsewhereKit", (PackageKit,), {"distribution": "zzz-qqq"}))
    assert set(said.values()) == {"zzz-qqq is not installed in this environment. Run `pip install --editable .`."}


async def test_a_name_that_is_misspelt_is_told_with_the_nearest(site: Path, tmp_path: Path) -> None:
    install(site)
    said = await failures(tmp_path, type("MisspeltKit", (PackageKit,), {"distribution": "portico-acmee"}))
    assert all("Is it portico-acme? Otherwise run `pip" in words for words in said.values())


async def test_a_kit_that_does_not_say_which_package_is_told_so(tmp_path: Path) -> None:
    said = await failures(tmp_path, type("UnsaidKit", (PackageKit,), {}))
    assert set(said.values()) == {'say which package UnsaidKit tests: distribution = "portico-…"'}


async def test_a_package_without_entry_points_is_told_what_to_add(site: Path, tmp_path: Path) -> None:
    install(site, Broken("", "", entry_points=""))
    said = await failures(tmp_path)
    assert "Add [project.entry-points.portico] to its pyproject.toml" in said["its_entry_point_is_named_for_it"]


@pytest.mark.parametrize("name", sorted(EVERY - {COMPLETE, "its_version_is_one", REQUIRES, NAMED}))
async def test_an_entry_point_that_leads_nowhere_is_told_once(site: Path, tmp_path: Path, name: str) -> None:
    if name == MISSPELT:
        pytest.importorskip("portico_host")
    install(site, BROKEN["a package that is not there"])
    if name == "its_commands_can_be_loaded":
        assert await failures(tmp_path, without=EVERY - {name}) == {}
    else:
        with pytest.raises(pytest.skip.Exception, match=r"no module portico_acmee\._plugin: see test_its_entry_point_"):
            await failures(tmp_path, without=EVERY - {name})


async def test_a_package_that_has_only_some_fields_is_told_the_others_whatever_python_says(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Python 3.12 on, to ask for a field that is not there is deprecated."""

    def strictly(message: Message, name: str) -> object:
        assert name in message, f"{name} is asked for and not there"
        return Message.get(message, name)

    lines = (*METADATA.splitlines()[:3], "Classifier: License :: OSI Approved :: MIT License")
    install(site, Broken("", "", metadata=lambda text: "\n".join(lines)))
    (site / "portico_remnant-1.0.dist-info").mkdir()
    (site / "portico_remnant-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.4\n", "utf-8")
    monkeypatch.setattr("importlib.metadata._adapters.Message.__getitem__", strictly)
    said = await failures(tmp_path, without=EVERY - {COMPLETE})
    assert said[COMPLETE].partition("\n")[0] == f"portico-acme lacks in its metadata: {ADVICE}"
    elsewhere = type("ElsewhereKit", (PackageKit,), {"distribution": "portico-acmee"})
    assert "Is it portico-acme?" in (await failures(tmp_path, elsewhere, without=EVERY - {COMPLETE}))[COMPLETE]


async def test_a_service_that_passes_on_another_may_have_its_name(site: Path, tmp_path: Path) -> None:
    made = "        self.name = services.get(TextSearch, 'docs').name\n"
    imported = "from portico.ports.text_search import TextSearch\n"
    install(site, Broken("", "", {"search.py": f"{imported}{replaced(SEARCH, MADE, MADE + made)}"}))
    assert await failures(tmp_path, without=EVERY - {CALLED, OPENS}) == {}


async def test_a_name_for_two_versions_of_a_port_is_tried_in_the_one_that_is_here(site: Path, tmp_path: Path) -> None:
    newer = """Registration(name="acme", factory="portico_acme.gone:X", summary="Acme.", port_version=7)"""
    install(site, Broken("", "", {"_plugin.py": replaced(PLUGIN, ")\n    ]\n", f"),\n        {newer},\n    ]\n")}))
    assert await failures(tmp_path, without=PROBED) == {}


async def test_a_thread_that_the_event_loop_keeps_is_not_left_behind_by_a_service(site: Path, tmp_path: Path) -> None:
    closed = replaced(SEARCH, CLOSED, "        await asyncio.to_thread(print, end='')\n")
    install(site, Broken("", "", {"search.py": closed}))
    assert await failures(tmp_path, without=PROBED) == {}


async def test_settings_that_the_kit_cannot_make_are_asked_for(site: Path, tmp_path: Path) -> None:
    strict = replaced(CONFIG, '"en", ', '"en", validator=checked, ').replace('default="en", ', "")
    check = (
        "\n\ndef checked(settings, field, value):\n    if len(value) != 2:\n        raise ValueError('two letters')\n"
    )
    install(site, Broken("", "", {"config.py": strict.replace("\n\n@frozen", f"{check}\n\n@frozen")}))
    said = await failures(tmp_path)
    assert said.keys() == {OPENS, LEAVES, SHOWN, CALLED}
    assert "(two letters). Give it some: settings = (AcmeSettings(…),)" in said[OPENS]
    from portico_acme.config import AcmeSettings  # type: ignore[import-not-found]

    from portico.registration import Secret

    kit = type("GivenKit", (AcmeKit,), {"settings": (AcmeSettings(Secret("mine"), "it"),)})
    assert await failures(tmp_path, kit) == {}


async def test_commands_alone_are_a_package_too(site: Path, tmp_path: Path) -> None:
    points = "[portico.commands]\npolish = portico_acme.search:AcmeSearch\n"
    install(site, Broken("", "", entry_points=points))
    assert await failures(tmp_path) == {}


def test_names_of_distributions_are_compared_as_installers_do() -> None:
    assert folded("Portico_Acme.Search") == "portico-acme-search"
