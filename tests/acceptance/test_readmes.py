"""The programs in the READMEs, as somebody would paste them: each runs, with the configuration that its README shows.

What goes over the network is answered at a port: a search by the recorded answers of its own tests, a model and a web
service by a server on loopback. All of them run in one process, since most of the time goes to imports.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.support.postgres_server import postgres_server
from tests.support.replayed_model import ReplayedModel

from portico.plugins import HttpRequest
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.recorded_server import RecordedServer

ROOT = Path(__file__).parents[2]
LEFT_OUT = {
    "README.md": "tests/architecture/test_documentation.py runs it, in a clone",
    "adapters/cli": "it has commands, which the pages on them run",
}
TEMPLATES = sorted((ROOT / "docs" / "template").iterdir())
LEAVES = [
    folder
    for folder in [ROOT / "core", *sorted(ROOT.glob("*/*/")), *TEMPLATES]
    if (folder / "pyproject.toml").is_file() and not any(part.startswith(".") for part in folder.parts)
]
READMES = [leaf / "README.md" for leaf in LEAVES if leaf.relative_to(ROOT).as_posix() not in LEFT_OUT]


WITHOUT_SETTINGS = {"core", "adapters/wire", "tests/testkit"}
Prepared = Callable[[pytest.MonkeyPatch], AbstractContextManager[dict[str, str]]]
"""Makes what a program needs, and gives what is to be written in it in place of what, since there is no network."""


def recorded(name: str, general: str, news: str = "") -> Prepared:
    """Have searches answered as they were when the tests of a connector were recorded."""

    def answer(request: HttpRequest) -> Path:
        asked = f"{request.url} {dict(request.params)} {request.json}"
        return ROOT / "connectors" / name / "tests" / "recorded" / (news if news and "news" in asked else general)

    @contextmanager
    def prepared(patch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
        patch.setattr("portico_web.http.client.HttpxHttpClient", lambda *_: RecordedHttpClient(answer))
        for key in ("BRAVE_API_KEY", "TAVILY_API_KEY", "GOOGLE_API_KEY", "SEARCH_KEY", "OPENAI_API_KEY"):
            patch.setenv(key, "any")
        yield {}

    return prepared


@contextmanager
def documents(patch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Have a folder of documents, and a wiki."""
    Path("docs").mkdir()
    Path("docs", "filters.md").write_text("# Filters\n\n## Declaring\n\nFilters are declared as data.\n", "utf-8")
    with recorded("mediawiki", "lighthouse.json")(patch) as replaced:
        yield replaced


def model(variable: str, name: str, base: str) -> Prepared:
    """Return what has a model that tells a joke, of this name and at an address that ends so."""

    @contextmanager
    def prepared(patch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
        patch.setenv(variable, "any")
        with ReplayedModel("Knock, knock.") as server:
            yield {f'model="{name}"': f'model="{name}", base_url="{server.url}{base}"'}

    return prepared


@contextmanager
def web_service(patch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Have a service that says something."""
    with RecordedServer({"/find": b'{"found": []}'}) as server:
        yield {"https://api.example": server.url}


@contextmanager
def nothing(patch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Have what is installed."""
    yield {}


@contextmanager
def postgres(patch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Have a database."""
    with postgres_server() as server:
        patch.setenv("DATABASE_URL", server.uri)
        yield {}


@contextmanager
def page(patch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Have a server of documents."""
    Path("handbook").mkdir()
    Path("handbook", "filters.md").write_text("# Filters\n\nFilters are declared as data.\n", "utf-8")
    patch.setenv("PORTICO_SERVE_TOKEN", "a-token-of-programs-0123456789")
    command = [sys.executable, "-m", "portico_cli", "serve", "--port", "0", "--docs", "handbook"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    with process:
        try:
            assert process.stdout is not None
            yield {"http://127.0.0.1:8321": process.stdout.readline().partition("/?")[0]}
        finally:
            process.terminate()


@contextmanager
def cases(patch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Have the cases that the README of evaluations shows."""
    [shown] = re.findall(r"```json\n(.*?)```", (ROOT / "adapters" / "eval" / "README.md").read_text("utf-8"), re.DOTALL)
    Path("cases.jsonl").write_text(shown, "utf-8")
    yield {}


PREPARED: dict[str, Prepared] = {
    "adapters/eval": cases,
    "adapters/host": documents,
    "adapters/web": web_service,
    "adapters/anthropic": model("ANTHROPIC_API_KEY", "claude-sonnet-5-5", ""),
    "adapters/gemini": model("GEMINI_API_KEY", "gemini-3.8-flash", "/v1beta"),
    "adapters/openai": model("OPENAI_API_KEY", "gpt-4o-mini", "/v1"),
    "adapters/postgres": postgres,
    "adapters/serve": page,
    "connectors/bing": recorded("bing", "what_is_the_semantic_kernel.json"),
    "connectors/brave": recorded("brave", "brave_what_is_the_semantic_kernel.json", "brave_news.json"),
    "connectors/documents": documents,
    "connectors/google": recorded("google", "what_is_the_semantic_kernel.json"),
    "connectors/mediawiki": recorded("mediawiki", "lighthouse.json"),
    "connectors/searxng": recorded("searxng", "general.json"),
    "connectors/tavily": recorded("tavily", "tavily_what_is_the_semantic_kernel.json", "tavily_news.json"),
}


"""The command that the README of the testkit tests. `input` alone may sleep through an interrupt just before it."""


def name_of(readme: Path) -> str:
    return readme.parent.relative_to(ROOT).as_posix()


def is_test(program: str) -> bool:
    return bool(re.search(r"^(async )?def test_|^class Test", program, re.MULTILINE))


def programs_of(readme: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", readme.read_text("utf-8"), re.DOTALL)


def unused(program: str) -> set[str]:
    """Return the functions and classes that a program defines and does nothing with."""
    tree = ast.parse(program)
    defined = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    return defined - {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@pytest.fixture
def own_modules() -> Iterator[None]:
    """Forget the templates' package before and after: three of them have one import name."""
    forget()
    yield
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0].startswith("portico_acme")]:
        del sys.modules[name]


def test_every_readme_is_run_or_left_out_for_a_reason() -> None:
    assert len(READMES) >= 25
    assert all((ROOT / left).exists() for left in LEFT_OUT), "take out of LEFT_OUT what is gone"


@pytest.mark.parametrize("readme", READMES, ids=name_of)
@pytest.mark.usefixtures("own_modules")
def test_the_programs_of_a_readme_run(readme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = readme.read_text("utf-8")
    assert "pip install portico-" in text, "a README says how the package is installed"
    tables = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert tables or name_of(readme) in WITHOUT_SETTINGS, "a README has an example of portico.toml"
    programs = [program for program in programs_of(readme) if not is_test(program)]
    assert programs, "a README has a short example in Python"
    monkeypatch.chdir(tmp_path)
    if readme.parent in TEMPLATES:
        monkeypatch.syspath_prepend(readme.parent / "src")
    with PREPARED.get(name_of(readme), nothing)(monkeypatch) as replaced:
        if any("portico_host" in program for program in programs) and tables:
            (tmp_path / "portico.toml").write_text(tables[0], "utf-8")
        for program in programs:
            assert unused(program) == set(), "a program that only defines things shows nothing"
            text = program
            for old, new in replaced.items():
                assert any(old in each for each in programs)
                text = text.replace(old, new)
            exec(compile(text, str(readme), "exec", dont_inherit=True), {"__name__": "__main__"})


def test_the_tests_in_the_readme_of_the_testkit_pass(tmp_path: Path) -> None:
    programs = [program for program in programs_of(ROOT / "tests" / "testkit" / "README.md") if is_test(program)]
    assert len(programs) == 3
    for number, program in enumerate(programs):
        # The package of the page is one that nobody has; its own tests ask the kit of the same things.
        if "PackageKit" not in program:
            (tmp_path / f"test_{number}.py").write_text(program, "utf-8")
    planner = ROOT / "docs" / "template" / "planner" / "src"
    variables = {**os.environ, "PYTHONPATH": str(planner)}
    options = ["-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", f"--rootdir={tmp_path}", "-c", os.devnull]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", *options, tmp_path],
        env=variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
