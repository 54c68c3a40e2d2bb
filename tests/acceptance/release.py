"""Build what is released, and try it as a stranger does: `python -m tests.acceptance.release [FOLDER]`.

Wheels and source distributions of every package, built twice into FOLDER (`dist`) and compared byte by byte; their
metadata checked by twine; the command `portico` installed from them by pipx, and asked a question. Exits 1 with what
is wrong.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The root package is the workspace itself.
PACKAGES = sorted([ROOT / "core", *(each.parent for each in ROOT.glob("*/*/pyproject.toml"))])
QUESTION, PASSAGE = "How often do I descale the kettle?", "Descale the kettle with vinegar once a month."


def version() -> str:
    """Return the one version that all have; the changelog has it too."""
    found = {tomllib.loads((each / "pyproject.toml").read_text("utf-8"))["project"]["version"] for each in PACKAGES}
    if len(found) != 1:
        sys.exit(f"The distributions have several versions: {', '.join(sorted(found))}.")
    [one] = found
    if not re.search(rf"^## {re.escape(one)} \(", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        sys.exit(f"CHANGELOG.md has no section {one}.")
    return one


def build(folder: Path) -> dict[str, str]:
    """Build everything into a folder, each wheel from its source distribution; return the digests by file name."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("portico*"):
        old.unlink()
    run("uv", "build", "--quiet", "--all-packages", f"--out-dir={folder}")
    for workspace in folder.glob("portico_workspace-*"):
        workspace.unlink()
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(folder.glob("portico*"))}


def run(*command: str | Path, folder: Path | None = None, **variables: str) -> str:
    """Run a command to its end, and return what it printed."""
    # A build takes the time of its files from here, if it takes any.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600", **variables}
    done = subprocess.run(command, cwd=folder or ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join(map(str, command))
        sys.exit(f"{words} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def main() -> None:
    """Build, compare, check, install, ask."""
    folder = Path(sys.argv[1] if sys.argv[1:] else "dist").resolve()
    number = version()
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        first, second = build(folder), build(place / "again")
        if changed := sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)):
            sys.exit(f"Built twice, these differ: {', '.join(changed)}.")
        wheels = sum(name.endswith(".whl") for name in first)
        if not len(PACKAGES) == wheels == len(first) - wheels:
            sys.exit(f"Of {len(PACKAGES)} packages there are {wheels} wheels in {len(first)} files.")
        print(f"{wheels} wheels and as many source distributions of {number}, built twice: the same bytes")
        run("uvx", "twine", "check", "--strict", *(folder / name for name in first))
        print("twine finds nothing wrong with their metadata")

        home = {"PIPX_HOME": str(place / "pipx"), "PIPX_BIN_DIR": str(place / "bin"), "PIP_FIND_LINKS": str(folder)}
        run("uvx", "pipx", "install", "--quiet", f"--python={sys.executable}", "portico-ai", folder=place, **home)
        run("uvx", "pipx", "inject", "--quiet", "portico-ai", "portico-mediawiki", folder=place, **home)
        portico = place / "bin" / "portico"
        if number not in (said := run(portico, "--version", folder=place)):
            sys.exit(f"portico --version says {said}.")
        (place / "documents").mkdir()
        (place / "documents" / "kettle.md").write_text(f"# Kettle\n\n{PASSAGE}\n", "utf-8")
        state = {"XDG_CACHE_HOME": str(place / "cache"), "XDG_STATE_HOME": str(place / "state")}
        answer = run(portico, "ask", QUESTION, "--docs", "documents", folder=place, **state)
        if PASSAGE not in " ".join(answer.split()):
            sys.exit(f"portico ask answers:\n{answer}")
        if "mediawiki" not in run(portico, "plugins", folder=place, **state):
            sys.exit("portico plugins does not list what was installed beside it.")
    print("pipx installs a portico from them that answers, and finds a package beside it")


if __name__ == "__main__":
    main()
