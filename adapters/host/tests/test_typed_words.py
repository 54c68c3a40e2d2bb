"""What hints tell people to type means to their shell what it says."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given, strategies as st

from portico_host.typed_words import quoted

WORDS = [
    "portico-acme",
    "acmesdk[http]<3,>=2",
    "acmesdk!=2",
    "my notes",
    "it's",
    'a "word"',
    "$HOME and `id`",
    r"C:\new notes\n",
    "~ada",
    "a*b?",
    "one; two & three | four",
    "",
    "zwei\nZeilen",
]


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_word_is_one_word_of_a_posix_shell(word: str) -> None:
    assert shlex.split(quoted(word, windows=False)) == [word]


@pytest.mark.skipif(shutil.which("sh") is None, reason="no POSIX shell is here")
def test_a_posix_shell_reads_each_word_as_it_is() -> None:
    script = "printf '%s\\0' " + " ".join(quoted(word, windows=False) for word in WORDS)
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().split("\0")[:-1] == WORDS


@given(st.text(st.characters(exclude_characters='\0"', exclude_categories=["Cs"])))
def test_on_windows_only_double_quotes_quote(word: str) -> None:
    written = quoted(word, windows=True)
    assert written in (word, f'"{word}"')
    assert written != word or not set(word) & set(" <>|&^()%!,;='*?")
    assert written != ""


@pytest.mark.parametrize("windows", [True, False])
@pytest.mark.parametrize("requirement", ["portico-acme", "acmesdk>=2", "portico-acme[fast]", "acmesdk[http]<3,>=2"])
def test_a_requirement_is_written_alike_everywhere(requirement: str, windows: bool) -> None:
    expected = requirement if requirement == "portico-acme" else f'"{requirement}"'
    assert quoted(requirement, windows=windows) == expected
