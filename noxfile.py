"""Every check of the workspace: `uv run nox` runs those that CI runs, `uv run nox -l` lists all."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nox

ROOT = Path(__file__).parent
LEAVES = sorted(
    path.parent.relative_to(ROOT)
    for pattern in ("core", "adapters/*", "connectors/*", "planners/*", "tests/testkit")
    for path in ROOT.glob(f"{pattern}/pyproject.toml")
)
SOURCES = [str(leaf / "src") for leaf in LEAVES]

# One environment serves every session that wants the whole workspace: it is made once and checked in a blink
# by the sessions that follow.
SHARED = ROOT / ".nox" / "workspace"
SCRIPTS = SHARED / ("Scripts" if sys.platform == "win32" else "bin")
# Built once for all isolated sessions.
WHEELS = ROOT / ".nox" / "wheels"
CHECK_GROUPS = ("test", "lint", "types", "imports")
BUILD_SITE = ("build", "--clean", "--strict")
AGENTDOJO = "agentdojo==0.1.35"
# Tests wait for processes and servers half of their time, so a core serves two of these. Each comes to hold up to 1 GB.
IN_PARALLEL = (f"--numprocesses={min(4, 2 * (os.cpu_count() or 1))}",)

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "imports", "real", "browser", "tests"]


def distribution(leaf: Path) -> str:
    """Return the name of the distribution that a leaf folder holds."""
    name: str = tomllib.loads((ROOT / leaf / "pyproject.toml").read_text("utf-8"))["project"]["name"]
    return name


def needed_of_ours(names: set[str]) -> set[str]:
    """Add to these distributions those of the workspace that they depend on."""
    projects = {
        distribution(leaf): tomllib.loads((ROOT / leaf / "pyproject.toml").read_text("utf-8")) for leaf in LEAVES
    }
    further = {
        item
        for name in names
        for item in projects[name]["project"]["dependencies"]
        if item in projects and item not in names
    }
    return needed_of_ours(names | further) if further else names


def uv_sync(session: nox.Session, environment: Path, groups: Iterable[str], *options: str) -> None:
    """Bring an environment to the pinned versions of the workspace and these dependency groups."""
    session.run_install(
        "uv",
        "sync",
        "--quiet",
        "--no-default-groups",
        *options,
        *(f"--group={group}" for group in groups),
        env={"UV_PROJECT_ENVIRONMENT": str(environment), "VIRTUAL_ENV": str(environment)},
        external=True,
    )


def run_in_workspace(
    session: nox.Session,
    command: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    compiled: bool = False,
    groups: Iterable[str] = (),
    codes: Iterable[int] = (0,),
) -> None:
    """Run a program of the shared environment, after bringing that up to date; ``compiled`` writes its bytecode too."""
    uv_sync(session, SHARED, (*CHECK_GROUPS, *groups), *(["--compile-bytecode"] if compiled else []))
    session.run(
        str(SCRIPTS / command),
        *arguments,
        env={"VIRTUAL_ENV": str(SHARED), "PATH": os.pathsep.join([str(SCRIPTS), os.environ["PATH"]]), **(env or {})},
        external=True,
        success_codes=codes,
    )


def run_pytest(
    session: nox.Session, *arguments: str, env: Mapping[str, str] | None = None, **options: Iterable[Any]
) -> None:
    """Run tests in the shared environment.

    Many start the command line, which would compile all that it imports each time: half of what they take. So
    bytecode is written, even where the user's environment says not to.
    """
    kept = {"PYTHONDONTWRITEBYTECODE": "", **(env or {})}
    run_in_workspace(session, "pytest", "-q", *arguments, env=kept, compiled=True, **options)


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Check style and formatting."""
    run_in_workspace(session, "ruff", "check", "--quiet", *(session.posargs or ["."]))
    run_in_workspace(session, "ruff", "format", "--check", "--quiet", *(session.posargs or ["."]))


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """Check the types of every distribution's sources, strictly, and those of each template as its own settings say."""
    run_in_workspace(session, "mypy", *(session.posargs or SOURCES))
    for template in [] if session.posargs else sorted(ROOT.glob("docs/template/*")):
        folders = [str(template / "src"), str(template / "tests")]
        run_in_workspace(session, "mypy", f"--config-file={template / 'pyproject.toml'}", *folders)


@nox.session(venv_backend="none")
def imports(session: nox.Session) -> None:
    """Check the dependency rule."""
    configuration = ROOT / ".nox" / "importlinter.toml"
    run_in_workspace(session, "python", "tests/architecture/import_contracts.py", str(configuration))
    session.run(
        str(SCRIPTS / "lint-imports"), "--no-logo", f"--config={configuration}", *session.posargs, external=True
    )


def changed_leaves(session: nox.Session) -> list[Path]:
    """Return the leaves with files that differ from the main branch, or that git does not know yet."""
    base = session.run("git", "merge-base", "HEAD", "main", external=True, silent=True, success_codes=[0, 1, 128])
    commit = str(base).strip() if re.fullmatch(r"[0-9a-f]{40,}", str(base).strip()) else "HEAD"
    known = session.run("git", "diff", "--name-only", commit, external=True, silent=True)
    new = session.run("git", "ls-files", "--others", "--exclude-standard", external=True, silent=True)
    files = [Path(line) for line in f"{known}\n{new}".splitlines() if line]
    return [leaf for leaf in LEAVES if any(file.is_relative_to(leaf) for file in files)]


@nox.session(venv_backend="none")
def quick(session: nox.Session) -> None:
    """Check style and types, and run the unit tests of core and of each distribution that differs from main."""
    lint(session)
    run_in_workspace(session, "mypy", *SOURCES)
    leaves = dict.fromkeys([Path("core"), *changed_leaves(session)])
    folders = [str(leaf / "tests") for leaf in leaves]
    which = "not slow and not real and not mcp and not models and not browser and not packaging and not process"
    env = {"PORTICO_HYPOTHESIS": "quick"}
    run_pytest(session, "-m", which, *IN_PARALLEL, *session.posargs, *folders, env=env)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run the tests in several processes; what follows `--` goes to pytest, which is one process then."""
    run_pytest(
        session,
        "-m",
        "not slow and not real and not mcp and not models and not browser",
        *(session.posargs or IN_PARALLEL),
    )


@nox.session(venv_backend="none")
def real(session: nox.Session) -> None:
    """Run the tests that ask a real language model on this machine."""
    # A model is asked with one processor thread, so that two processes with one each are right for two cores.
    run_pytest(
        session,
        "-m",
        "real and not slow",
        *(session.posargs or ["tests/real", "adapters/llamacpp", "--numprocesses=auto", "--maxprocesses=4"]),
    )


@nox.session(venv_backend="none")
def browser(session: nox.Session) -> None:
    """Use `portico serve` in Chromium as a person does; `-- --screenshots` takes the pictures of the docs."""
    if shutil.which("chromium") is None and sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get"):
        for words in (["update"], ["install", "--yes", "chromium"]):
            session.run("apt-get", "--quiet=2", *words, external=True, silent=True, success_codes=[0, 100])
    if shutil.which("chromium") is None:
        session.skip("Chromium is not installed, and the tests of the page need it: `apt-get install chromium`.")
    if shutil.which("npm") is None:
        session.warn("axe-core comes by npm, which is not installed: barriers in the pages are not looked for.")
    if "--screenshots" in session.posargs:
        run_in_workspace(session, "python", "-m", "tests.browser.screenshots", groups=["browser"])
        return
    if session.posargs:
        run_pytest(session, "-m", "browser", "-s", *session.posargs, groups=["browser"])
        return
    # What is measured runs alone, and is shown.
    alone = "tests/browser/test_speed.py"
    others = ("--numprocesses=2", "tests/browser", f"--ignore={alone}")
    run_pytest(session, "-m", "browser", *others, groups=["browser"], codes=[0, 1])
    # A browser may be late on a machine that is busy: what failed has a second time, and 5 is that nothing has.
    again = ("--last-failed", "--last-failed-no-failures=none", "tests/browser", f"--ignore={alone}")
    run_pytest(session, "-m", "browser", *again, groups=["browser"], codes=[0, 5])
    run_pytest(session, "-m", "browser", "-s", alone, groups=["browser"])


@nox.session(venv_backend="none")
def mcp(session: nox.Session) -> None:
    """Use real servers of the Model Context Protocol, which uv and npm install, and measure what a call costs."""
    run_pytest(session, "-m", "mcp", "-s", *(session.posargs or ["tests/mcp_servers", "adapters/mcp"]))
    if not session.posargs:
        run_in_workspace(session, "python", "-m", "tests.bench.mcp_calls")


@nox.session(venv_backend="none")
def models(session: nox.Session) -> None:
    """Ask servers that speak the forms of several vendors by each adapter: LiteLLM's proxy and aimock."""
    run_pytest(session, "-m", "models", *(session.posargs or ["tests/model_servers"]))


@nox.session(venv_backend="none")
def soak(session: nox.Session) -> None:
    """Run the tests that take minutes."""
    run_pytest(session, "-m", "slow", *session.posargs)


@nox.session(venv_backend="none")
def endurance(session: nox.Session) -> None:
    """Ten thousand runs on a service that fails, then a day of `portico serve` in ten minutes: twelve minutes."""
    run_in_workspace(session, "python", "-m", "tests.endurance.runs")
    run_in_workspace(session, "python", "-m", "tests.endurance.served_day")


@nox.session(venv_backend="none")
def fuzz(session: nox.Session) -> None:
    """Run the parsers' property tests with 5,000 random examples each; `-- PATH...` runs all properties of those."""
    env = {"PORTICO_HYPOTHESIS": "fuzz"}
    which = "hypothesis" if session.posargs else "fuzz"
    run_pytest(session, "-m", which, "--timeout=1200", *session.posargs, env=env)


@nox.session(venv_backend="none")
def pages(session: nox.Session) -> None:
    """Do for each page of the docs, or `-- some of them`, what a reader does, in environments from wheels."""
    run_in_workspace(session, "python", "-m", "tests.acceptance.pages", *session.posargs)


@nox.session(venv_backend="none")
def differential(session: nox.Session) -> None:
    """Ask handlebars.js, Mermaid and Prism, by npm: recorded answers again, random templates and plans."""
    run_in_workspace(session, "python", "-m", "tests.differential.handlebars.live", *session.posargs)
    if not session.posargs:
        run_in_workspace(session, "python", "-m", "tests.differential.mermaid.live")
        run_in_workspace(session, "python", "-m", "tests.differential.openapi.live")


@nox.session
def mutation(session: nox.Session) -> None:
    """Change core in thousands of small ways and see whether its tests notice; `-- filter prompts` some modules only.

    It takes an hour or two, and goes on where it was stopped.
    """
    uv_sync(session, Path(session.virtualenv.location), ["test", "mutation"])
    session.run("python", "-m", "tests.mutation", *session.posargs)


@nox.session(venv_backend="none")
def bench(session: nox.Session) -> None:
    """Measure against the raw floor: every file of tests/bench, or those given; `-- --peers` other frameworks too.

    These get separate environments in `.nox/peers`, and the figures go to `docs/explanation/performance.md`.
    """
    if "--peers" in session.posargs:
        run_in_workspace(session, "python", "-m", "tests.bench.peers", *session.posargs)
        return
    for file in session.posargs or sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/bench/*.py")):
        run_in_workspace(session, "python", "-m", ".".join(Path(file).with_suffix("").parts))


@nox.session(name="eval", venv_backend="none")
def evaluate(session: nox.Session) -> None:
    """Measure quality: `nox -s eval` on the collection of the tests, `nox -s eval -- TASK PATH...` on a public one.

    `-- agentdojo` has another environment beside the workspace's, with that package and what it depends on.
    """
    if "agentdojo" not in session.posargs:
        run_in_workspace(session, "python", "-m", "tests.eval", *session.posargs)
        return
    place = ROOT / ".nox" / "agentdojo"
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    uv_sync(session, place, ["test"], "--inexact")
    wanted = ("--constraint=constraints.txt", AGENTDOJO)
    session.run_install("uv", "pip", "install", "--quiet", f"--python={python}", *wanted, external=True)
    session.run(str(python), "-m", "tests.eval", *session.posargs, external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into `site/`; `-- serve` shows it, `-- publish FOLDER` adds it to those of earlier versions."""
    uv_sync(session, Path(session.virtualenv.location), ["docs"])
    drawing = ROOT / "docs" / "theme" / "mermaid.min.js"
    if not drawing.exists() and shutil.which("npm"):
        folder = ROOT / ".nox" / "npm"
        wanted = json.loads((ROOT / "tests/differential/mermaid/package.json").read_text("utf-8"))["dependencies"]
        session.run("npm", "install", "--silent", f"--prefix={folder}", f"mermaid@{wanted['mermaid']}", external=True)
        shutil.copy(folder / "node_modules/mermaid/dist/mermaid.min.js", drawing)
    elif not drawing.exists():
        session.log("Without npm, pages load Mermaid, which draws plans, from its own site.")
    publishing = session.posargs[:1] == ["publish"]
    session.run("zensical", *(BUILD_SITE if publishing else session.posargs or BUILD_SITE))
    if publishing:
        publish(Path(session.posargs[1]))


def publish(folder: Path) -> None:
    """Put the site beside those of other versions; the list of them is for the chooser of the theme."""
    minor = ".".join(
        tomllib.loads((ROOT / "core/pyproject.toml").read_text("utf-8"))["project"]["version"].split(".")[:2]
    )
    shutil.copytree(ROOT / "site", folder / minor, dirs_exist_ok=True)
    found = [each.name for each in folder.iterdir() if re.fullmatch(r"\d+\.\d+", each.name)]
    names = sorted(found, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    listed = [{"version": name, "title": name, "aliases": ["latest"] * (name == names[0])} for name in names]
    (folder / "versions.json").write_text(json.dumps(listed), "utf-8")
    (folder / "index.html").write_text(f'<meta http-equiv="refresh" content="0; url={names[0]}/">\n', "utf-8")


@nox.session(venv_backend="none")
def recording(session: nox.Session) -> None:
    """Record the terminal that the first page of the docs shows, by commands that run here (needs npm)."""
    run_in_workspace(session, "python", "-m", "tests.acceptance.recording")


@nox.session(venv_backend="none")
def release(session: nox.Session) -> None:
    """Build every wheel and source distribution into `dist`, twice, and try them as a stranger does."""
    run_in_workspace(session, "python", "-m", "tests.acceptance.release", *session.posargs)


@nox.session
def site(session: nox.Session) -> None:
    """Look at every page of the built site in Chromium: is anything cut off on a phone, or on a wide screen?"""
    uv_sync(session, Path(session.virtualenv.location), ["browser"], "--no-install-workspace")
    session.run("python", "-m", "tests.browser")


def requirements(leaf: Path) -> set[str]:
    """Return what the tests of a leaf need: its dependencies, and those of its dependency group `test`."""
    project = tomllib.loads((ROOT / leaf / "pyproject.toml").read_text("utf-8"))
    return {*project["project"]["dependencies"], *project.get("dependency-groups", {}).get("test", ())}


def built(session: nox.Session, leaf: Path) -> Path:
    """Return the wheel of a leaf, which is built where it is not younger than all that goes into it."""
    name = distribution(leaf)
    folders = [ROOT / leaf, *([ROOT / "docs" / "template"] if name == "portico-ai" else [])]
    # Folders count too: one is younger when a file of it is gone.
    youngest = max(
        path.stat().st_mtime
        for folder in folders
        for path in (folder, *folder.rglob("*"))
        if not {"__pycache__", "tests"} & set(path.relative_to(folder).parts)
    )
    pattern = f"{name.replace('-', '_')}-[0-9]*.whl"
    there = list(WHEELS.glob(pattern))
    if not there or min(wheel.stat().st_mtime for wheel in there) <= youngest:
        for wheel in there:
            wheel.unlink()
        session.run_install("uv", "build", "--quiet", "--wheel", f"--out-dir={WHEELS}", str(leaf), external=True)
    (wheel,) = WHEELS.glob(pattern)
    return wheel


def folder_without_pins(session: nox.Session) -> Path:
    """Return a folder in which uv takes other versions than ours: in the workspace, it takes the pinned ones only."""
    # Not in nox's folder for temporary files, which the tests would have for theirs: some look for such a file above.
    folder = Path(session.virtualenv.location) / "without-pins"
    folder.mkdir(exist_ok=True)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]["dependency-metadata"]
    # The strings and lists of JSON are TOML too.
    tables = [", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) for table in settings]
    listed = ", ".join(f"{{ {table} }}" for table in tables)
    (folder / "pyproject.toml").write_text(f"[tool.uv]\ndependency-metadata = [{listed}]\n", "utf-8")
    return folder


@nox.session
@nox.parametrize(
    ("dist", "versions"),
    [
        nox.param(str(leaf), versions, id=f"{distribution(leaf)}{suffix}", tags=[versions])
        for versions, suffix in (("pinned", ""), ("oldest", ", oldest"), ("newest", ", newest"))
        for leaf in LEAVES
    ],
)
def isolated(session: nox.Session, dist: str, versions: str) -> None:
    """Test one distribution as its users have it: built, installed with its own dependencies and nothing else.

    With the versions that are tested together, with the oldest that it allows of what itself names, or with the newest.
    """
    leaves = {distribution(leaf): leaf for leaf in LEAVES}
    wanted = requirements(Path(dist))
    ours = sorted(needed_of_ours({distribution(Path(dist)), "portico-testkit", *(wanted & leaves.keys())}))
    # By file, not by name: an index may hold something else under that name.
    files = [str(built(session, leaves[name])) for name in ours]
    again = [f"--reinstall-package={name}" for name in ours]
    # What a wheel requires is no direct dependency of the command that installs it, so all that is direct is named.
    others = sorted({*wanted, "pytest-timeout>=2.4"} - leaves.keys())
    if versions == "pinned":
        session.install("--quiet", "--exact", "--constraint=constraints.txt", *again, *files, *others)
    else:
        chosen = ["--resolution=lowest-direct"] if versions == "oldest" else []
        with session.chdir(folder_without_pins(session)):
            session.install("--quiet", "--exact", "--upgrade", *chosen, *again, *files, *others)
    folder = ROOT / dist / "tests"
    command = ("python", "-m", "pytest", "-q", "-m", "not slow", str(folder), *session.posargs)
    # What is named may be tests of some distributions only: 5 is pytest's "no tests were collected".
    codes = [0, 5] if session.posargs else [0]
    # What tests start would compile all that it imports each time.
    session.run(*command, env={"PYTHONDONTWRITEBYTECODE": ""}, success_codes=codes)


PINS = re.compile(r"(?<=^constraint-dependencies = \[\n)(?:    .*\n)*(?=\]$)", re.MULTILINE)


@nox.session(venv_backend="none")
def pins(session: nox.Session) -> None:
    """Write the pins of pyproject.toml and constraints.txt anew: `-- --upgrade` takes the newest versions.

    Without it, versions stay as they are; what is new gets a pin and what is gone loses its own.
    """
    upgrade = "--upgrade" in session.posargs
    project = ROOT / "pyproject.toml"
    before = project.read_text("utf-8")
    if not PINS.search(before):
        session.error("pyproject.toml has no list `constraint-dependencies` to write to")
    try:
        if upgrade:
            project.write_text(PINS.sub("", before), "utf-8")
        session.run("uv", "lock", "--quiet", *(["--upgrade"] if upgrade else []), external=True)
        exported = session.run(
            "uv",
            "export",
            "--quiet",
            "--all-groups",
            "--all-packages",
            "--no-emit-workspace",
            "--no-hashes",
            "--no-annotate",
            "--no-header",
            external=True,
            silent=True,
        )
        chosen = without_needless_markers(str(exported).splitlines())
        entries = "".join(f'    "{pin}",\n' for pin in chosen)
        project.write_text(PINS.sub(lambda _: entries, before), "utf-8")
    except BaseException:
        project.write_text(before, "utf-8")
        raise
    heading = "# Written by `nox -s pins` from pyproject.toml: the versions that are tested together.\n"
    (ROOT / "constraints.txt").write_text(heading + "".join(f"{pin}\n" for pin in chosen), "utf-8")
    session.run("uv", "lock", "--quiet", external=True)


def without_needless_markers(requirements: Iterable[str]) -> list[str]:
    """Keep an environment marker only where a package has one version here and another there."""
    pins = [line.strip() for line in requirements if line.strip()]
    names = [pin.partition("==")[0] for pin in pins]
    return [
        pin if names.count(name) > 1 else pin.partition(";")[0].strip() for name, pin in zip(names, pins, strict=True)
    ]
