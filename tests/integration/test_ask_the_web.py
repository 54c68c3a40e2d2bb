"""The whole way: the command line asks a real server in another process, over HTTP, with nothing else configured.

The server speaks as MediaWiki and as SearXNG do. What is tested is what a person and a script see.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import Done
from tests.support.processes import started

from portico_cli.main import main

SERVER = Path(__file__).with_name("web_server.py")
QUESTION = "How tall is Skerryvane Lighthouse?"


@dataclass(frozen=True)
class Web:
    """The server: its address, and what it has been asked."""

    url: str
    log: Path

    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Start the server; it ends with its standard input, so with this process too, whatever becomes of that."""
    log = tmp_path_factory.mktemp("server") / "requests.jsonl"
    command = [sys.executable, str(SERVER), str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        try:
            port = process.stdout.readline().strip()
            watchdog.cancel()
            assert port.isdecimal(), f"the server said {port!r} and ended with {process.poll()}"
            yield Web(f"http://127.0.0.1:{port}", log)
            process.stdin.close()
            assert process.wait(20) == 0, "the server does not end with its standard input"
        finally:
            watchdog.cancel()
            process.kill()


@pytest.fixture
def web(server: Web) -> Web:
    """Give the server with an empty log."""
    os.truncate(server.log, 0)
    return server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a working directory with a folder of documents."""
    made = tmp_path / "work"
    (made / "docs").mkdir(parents=True)
    (made / "docs" / "lamps.md").write_text(
        "# Lamps\n\n## Oil\n\nThe lamp of Skerryvane Lighthouse burns for nine hours on a litre of whale oil.\n"
    )
    return made


@pytest.fixture
def configure(folder: Path, web: Web) -> Callable[..., None]:
    """Return what writes a portico.toml with one source, ``web``, and nothing else."""

    def write(use: str = "mediawiki", path: str = "/w/api.php", *further: str) -> None:
        lines = ["[search.web]", f'use = "{use}"', f'base_url = "{web.url}{path}"', *further]
        (folder / "portico.toml").write_text("\n".join(lines))

    return write


@pytest.fixture
def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return kept | {"PYTHONWARNINGS": "error", "PYTHONUTF8": "1"}


@pytest.fixture
def portico(
    folder: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Return what runs the command line in this process: each start of one would take a second."""
    monkeypatch.chdir(folder)
    for name in os.environ.keys() - environment.keys():
        monkeypatch.delenv(name)

    def run(*arguments: str) -> Done:
        code = main(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err, captured.err
        return Done(code, captured.out, captured.err)

    return run


SOURCES = pytest.mark.parametrize(("use", "path"), [("mediawiki", "/w/api.php"), ("searxng", "")])


@SOURCES
def test_a_question_is_answered_with_what_the_web_says_and_where(
    portico: Any, configure: Any, web: Web, use: str, path: str
) -> None:
    configure(use, path)
    done = portico("ask", QUESTION, "--source", "web", "--json")
    assert (done.code, done.err) == (0, "")
    told = done.json
    assert (told["outcome"], told["planner"], told["service"]) == ("answer", "retrieval", "extractive")
    # A metasearch quotes a line of a page, a wiki gives its introduction.
    assert {"mediawiki": "is 46 metres tall", "searxng": "is a granite tower"}[use] in told["answer"]
    citation = told["citations"][0]
    assert citation["number"] == 1
    assert citation["name"] == "Skerryvane Lighthouse"
    assert citation["link"] == f"{web.url}/wiki/Skerryvane_Lighthouse"
    passages = told["steps"][0]["result"]
    assert any(citation["quote"] in passage["value"] for passage in passages), "the quote is none"
    assert citation["quote"] in told["answer"]
    assert told["plan"]["steps"][0]["function"] == "web-GetTextSearchResults"
    # MediaWiki says that there is no more; SearXNG must be asked.
    assert len(web.asked()) == {"mediawiki": 1, "searxng": 2}[use]


def test_what_stands_deep_in_an_article_is_found_too(portico: Any, configure: Any) -> None:
    """The introduction does not say it; the place that the wiki found does."""
    configure()
    done = portico("ask", "Who turned the lens by hand?", "--source", "web", "--json")
    assert "Piers Oldcastle turned the lens by hand for nine nights" in done.json["answer"]


def test_people_see_the_answer_and_addresses(portico: Any, configure: Any, web: Web) -> None:
    configure()
    done = portico("ask", "Who was Maud Ellering?", "--source", "web")
    assert (done.code, done.err) == (0, "")
    assert "Maud Ellering (1829–1903) was an engineer of lighthouses and harbours." in done.out
    assert f"[1] {web.url}/wiki/Maud_Ellering  Maud Ellering" in done.out
    assert done.out.splitlines()[-1] == "Answered by extractive from 3 passages in 3 documents."


def test_a_configured_source_needs_no_naming(portico: Any, configure: Any) -> None:
    configure()
    assert "46 metres" in portico("ask", QUESTION).out


def test_who_asks_is_told_when_it_is_configured(portico: Any, configure: Any, web: Web) -> None:
    configure("mediawiki", "/w/api.php", 'contact = "ann@example.org"')
    portico("search", "lighthouse")
    assert "(ann@example.org)" in web.asked()[0]["agent"]


def test_results_are_numbered_and_paged(portico: Any, configure: Any, web: Web) -> None:
    configure()
    whole = portico("search", "harbour", "--source", "web", "--top", "45", "--json").json["results"]
    assert [result["number"] for result in whole] == list(range(1, 46))
    assert len({result["link"] for result in whole}) == 45
    assert all(result["text"] and result["name"] for result in whole)
    parts = [(int(asked["params"]["gsroffset"]), int(asked["params"]["gsrlimit"])) for asked in web.asked()]
    assert parts == [(0, 20), (20, 20), (40, 5)]
    part = portico("search", "harbour", "--source", "web", "--top", "3", "--skip", "19", "--json").json["results"]
    assert part == whole[19:22]


def test_a_metasearch_gives_each_result_once(portico: Any, configure: Any, web: Web) -> None:
    """Its engines agree on what there is, and not on which page."""
    configure("searxng", "")
    results = portico("search", "harbour", "--source", "web", "--top", "40", "--json").json["results"]
    assert len({result["link"] for result in results}) == len(results) == 40
    again = portico("search", "harbour", "--source", "web", "--top", "4", "--skip", "30", "--json").json["results"]
    assert again == results[30:34]
    assert [asked["params"]["pageno"] for asked in web.asked()][:3] == ["1", "2", "3"]


def test_where_nothing_is_found_it_says_so(portico: Any, configure: Any) -> None:
    configure()
    done = portico("ask", "skeryvane", "--source", "web")
    assert (done.code, done.err) == (0, "")
    assert done.out == "Nothing was found in 'web'.\n\n1 step done.\n"
    done = portico("search", "skeryvane", "--source", "web")
    assert done.out == "Nothing was found.\n"
    assert portico("search", "skeryvane", "--json").json["metadata"]["web"]["suggestion"] == "skerryvane"


def test_filters_reach_the_wiki(portico: Any, configure: Any) -> None:
    configure()

    def names(*arguments: str) -> list[str]:
        return [result["name"] for result in portico("search", *arguments, "--source", "web", "--json").json["results"]]

    assert names("harbour", "--filter", "incategory=Towns") == ["Tarn Haven"]
    assert names("brill", "--filter", "intitle=cheese") == ["Brill cheese"]
    assert names("lighthouse", "--filter", "namespace=12") == ["Help:Searching"]


def test_a_filter_that_the_source_does_not_have_names_those_that_it_has(portico: Any, configure: Any, web: Web) -> None:
    configure()
    done = portico("search", "harbour", "--source", "web", "--filter", "site=example.org")
    assert done.code == 2
    assert "'site'" in done.err
    assert "incategory" in done.err
    assert web.asked() == []


def test_the_web_and_documents_answer_together(portico: Any, configure: Any, web: Web) -> None:
    configure()
    done = portico(
        "ask", "What oil does the lamp of Skerryvane Lighthouse burn?", "--source", "web", "--docs", "docs", "--json"
    )
    assert done.code == 0
    links = {citation["link"] for citation in done.json["citations"]}
    assert any(link.startswith("file://") for link in links), links
    assert {step["function"].partition("-")[0] for step in done.json["steps"]} == {"web", "docs"}
    found = portico("search", "lighthouse", "--source", "web", "--docs", "docs", "--json").json["results"]
    places = {result["link"].partition(":")[0] for result in found}
    assert places == {"file", "http"}, "one ranking has both"


FAILURES = {
    "limited": ["429", "120 seconds"],
    "lagged": ["5 seconds", "7.2 seconds lagged"],
    "shut": ["403", "contact"],
    "broken": ["500"],
    "people": ["JSON", "address"],
    "nowhere": ["404", "address"],
}


@pytest.mark.parametrize("mood", FAILURES)
def test_a_server_that_fails_is_one_clear_error(portico: Any, configure: Any, mood: str) -> None:
    words = FAILURES[mood]
    configure("mediawiki", f"/{mood}/w/api.php")
    done = portico("search", "lighthouse", "--source", "web")
    assert (done.code, done.out) == (1, "")
    assert len(done.err.splitlines()) == 1, done.err
    assert all(word in done.err for word in ("Error: ", "'web'", *words)), done.err
    asked = portico("ask", QUESTION, "--source", "web", "--json")
    assert (asked.code, asked.err) == (1, "")
    assert all(word in asked.json["error"]["message"] for word in words), asked.out


def test_a_script_is_told_what_kind_of_failure_it_is(portico: Any, configure: Any) -> None:
    configure("mediawiki", "/lagged/w/api.php")
    done = portico("search", "lighthouse", "--source", "web", "--json")
    assert (done.code, done.err, done.json["error"]["type"]) == (1, "", "RateLimited")


def test_a_searxng_without_json_says_how_to_switch_it_on(portico: Any, configure: Any) -> None:
    configure("searxng", "/shut")
    done = portico("ask", QUESTION, "--source", "web")
    assert done.code == 1
    assert "search.formats" in done.err
    assert "settings.yml" in done.err


def test_a_searxng_with_its_limiter_on_says_so(portico: Any, configure: Any) -> None:
    configure("searxng", "/limited")
    done = portico("search", "lighthouse", "--source", "web")
    assert done.code == 1
    assert "limiter" in done.err


def test_what_one_source_cannot_the_other_answers(portico: Any, configure: Any) -> None:
    configure("mediawiki", "/broken/w/api.php")
    done = portico(
        "ask", "What does the lamp of Skerryvane Lighthouse burn?", "--docs", "docs", "--source", "web", "--json"
    )
    assert done.code == 0, done.err
    assert "whale oil" in done.json["answer"]
    (warning,) = done.json["warnings"]
    assert "web" in warning
    assert "500" in warning
    for_people = portico("search", "lamp", "--source", "web", "--docs", "docs")
    assert for_people.code == 0
    assert "! The source 'web' failed: " in for_people.out


def test_a_server_that_is_gone_is_named(portico: Any, folder: Path) -> None:
    (folder / "portico.toml").write_text('[search.web]\nuse = "mediawiki"\nbase_url = "http://127.0.0.1:9/w/api.php"\n')
    done = portico("ask", QUESTION, "--source", "web", "--json")
    assert (done.code, done.err) == (1, "")
    assert "http://127.0.0.1:9" in done.json["error"]["message"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('base_url = "en.wikipedia.org"', ["search.web.base_url", "https://host/w/api.php"]),
        ('contcat = "ann@example.org"', ["search.web.contcat", "contact"]),
        ("maxlag = -1", ["search.web.maxlag"]),
        ("base_url = 7", ["search.web.base_url", "a string"]),
    ],
)
def test_a_wrong_setting_names_file_and_key(portico: Any, folder: Path, line: str, words: list[str]) -> None:
    (folder / "portico.toml").write_text(f'[search.web]\nuse = "mediawiki"\n{line}\n')
    done = portico("ask", QUESTION, "--source", "web")
    assert (done.code, done.out) == (2, "")
    assert all(word in done.err for word in ("portico.toml", *words)), done.err


def test_a_searxng_needs_an_address(portico: Any, folder: Path) -> None:
    (folder / "portico.toml").write_text('[search.web]\nuse = "searxng"\n')
    done = portico("ask", QUESTION)
    assert done.code == 2
    assert "search.web.base_url: is missing" in done.err


@pytest.mark.skipif(os.name == "nt", reason="needs an interrupt that a process can be sent")
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["for people", "json"])
@pytest.mark.parametrize("command", [("ask", QUESTION), ("search", "lighthouse")], ids=["ask", "search"])
def test_an_interrupt_while_the_server_is_slow_ends_at_once(
    configure: Any, web: Web, folder: Path, environment: dict[str, str], command: Any, options: Any
) -> None:
    configure("mediawiki", "/slow/w/api.php")
    line = [sys.executable, "-m", "portico_cli", *command, "--source", "web", *options]
    with started(line, cwd=folder, env=environment, until=web.asked) as process:
        process.send_signal(signal.SIGINT)
        # The server is silent for 30 seconds, which nobody waits for.
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    if options:
        assert (json.loads(out)["error"]["type"], err.strip()) == ("Interrupted", "")
    else:
        # What was asked is a run that can go on; a search is none.
        going_on = r" `portico resume \w+` continues the run\." if command[0] == "ask" else ""
        assert out == ""
        assert re.fullmatch(rf"Interrupted\.{going_on}", err.strip()), err
