"""Fetch the texts that the questions are asked of, into a folder.

They come from Debian packages (`apt-get download`, `dpkg-deb`) and from source distributions (`pip download`), through
the clients as they are set up on this machine. Answers were judged with the versions that Debian 12 has.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

_GIT = (
    "gitglossary user-manual gitfaq gitignore githooks gitattributes gitrevisions gitworkflows giteveryday git-add "
    "git-archive git-bisect git-blame git-branch git-cherry-pick git-clean git-clone git-commit git-describe git-fetch "
    "git-gc git-grep git-init git-merge git-mv git-push git-rebase git-reflog git-remote git-reset git-revert git-rm "
    "git-shallow git-sparse-checkout git-stash git-status git-submodule git-switch git-tag git-worktree"
)
_LICENSES = "Apache-2.0 Artistic BSD CC0-1.0 GFDL-1.3 GPL-2 GPL-3 LGPL-3 MPL-2.0"
DEBIAN = {
    "base-files": [f"usr/share/common-licenses/{name}" for name in _LICENSES.split()],
    "bash-doc": ["usr/share/doc/bash/bashref.pdf"],
    "fish-common": ["usr/share/doc/fish/[!gr]*.html", "usr/share/doc/fish/cmds/*.html"],
    "git-doc": [f"usr/share/doc/git-doc/{name}.html" for name in _GIT.split()],
    "gnuplot-doc": ["usr/share/doc/gnuplot/gnuplot.pdf"],
    "mutt": ["usr/share/doc/mutt/html/[!im]*.html", "usr/share/doc/mutt/html/[im][!na]*.html"],
    "nano": ["usr/share/doc/nano/*.html"],
    "valgrind": ["usr/share/doc/valgrind/valgrind_manual.pdf.gz"],
    "zsh-doc": ["usr/share/doc/zsh-common/zsh.pdf"],
}
"""The files to take, by package."""
PYTHON = {"flask": "3.1.3", "attrs": "26.1.0"}
"""The versions of distributions whose folder `docs` is taken."""


def collect(folder: Path) -> int:
    """Fetch all texts into ``folder``, one folder for each package; return how many files there are."""
    for package, patterns in DEBIAN.items():
        with tempfile.TemporaryDirectory() as place:
            _run(["apt-get", "download", package], place)
            [archive] = Path(place).glob("*.deb")
            _run(["dpkg-deb", "-x", str(archive), "unpacked"], place)
            root = Path(place, "unpacked")
            _take((file for pattern in patterns for file in root.glob(pattern)), root, folder / package, flat=True)
    for name, version in PYTHON.items():
        with tempfile.TemporaryDirectory() as place:
            pip = ["pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            _run([*pip, f"{name}=={version}"], place)
            [archive] = Path(place).glob("*.tar.gz")
            with tarfile.open(archive) as packed:
                packed.extractall(place, filter="data")
            [docs] = Path(place).glob("*/docs")
            _take((file for suffix in ("rst", "md") for file in docs.rglob(f"*.{suffix}")), docs, folder / name)
    return sum(file.is_file() for file in folder.rglob("*"))


def _run(command: list[str], place: str) -> None:
    subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)


def _take(files: Iterable[Path], root: Path, folder: Path, *, flat: bool = False) -> None:
    for file in files:
        target = folder / (file.name if flat else file.relative_to(root))
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".gz":
            target.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
        else:
            shutil.copyfile(file, target)
