"""Asks Prism: `nox -s differential`, or `python -m tests.differential.openapi.live [FILE...]`.

The version of package.json is installed by npm into a temporary folder (or taken from `--modules`). Prism serves each
document and judges every request by it. We call each function with random arguments, and Prism must refuse none. The
files are those given, or the split documents of our tests and random documents: we read these as they are written
loosely, Prism as their authors meant them. `--examples N` sets how many calls there are for each function, `--seed N`
which. Exit code 1 means that a request was refused, or that a function is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
from tests.differential.openapi.documents import loose_document

from portico import Function
from portico.errors import PorticoError
from portico.plugins import Secret
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions

HERE = Path(__file__).parent
SPLIT = HERE.parents[2] / "adapters" / "openapi" / "tests" / "split"
_STARTED = "Prism is listening"
_NO_ANSWER = "No response defined"
_PATIENCE = 1_200
"""Tenths of a second until Prism listens."""
_DEEPEST = 4
MEANT = (
    (r'(?<=: )"(true|false)"', r"\1"),
    (r'("?additionalProperties"?): false', r"\1: true"),
    (r'"?enum"?: \["(\d+)"((?:, "\d+")*)\]', lambda found: found[0].replace('"', "").replace("enum:", '"enum":')),
    (r'\["true"\]', "[true]"),
    (r"\[new, paid, 3\]", '[new, paid, "3"]'),
    (r"items: \{type: string\}, (enum: \[date, price\])", r"items: {type: string, \1}"),
    (r"schema: \{type: string, format: binary\}", "schema: {type: object}"),
)
"""What the authors of the split documents meant, as replacements in their text."""


@contextmanager
def installed(modules: Path | None) -> Iterator[Path]:
    """Install Prism; yield the folder of its modules."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        sys.exit("This asks Prism, so node and npm must be installed.")
    with tempfile.TemporaryDirectory(prefix="portico-prism-") as folder:
        if modules is None:
            shutil.copy(HERE / "package.json", folder)
            command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--silent"]
            subprocess.run(command, cwd=folder, check=True, timeout=600)
        yield modules.resolve() if modules else Path(folder) / "node_modules"


@contextmanager
def prism(modules: Path, document: Path) -> Iterator[str]:
    """Serve a document; yield the URL. Raises ``ValueError`` with Prism's words for one that it cannot read."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["node", str(modules / "@stoplight" / "prism-cli" / "dist" / "index.js"), "mock", "--host", "127.0.0.1"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*command, "--port", str(port), str(document)], stdout=log, stderr=log)
        try:
            for _ in range(_PATIENCE):
                time.sleep(0.1)
                said = os.pread(log.fileno(), 1_000_000, 0).decode()
                if _STARTED in said:
                    break
                if process.poll() is not None:
                    raise ValueError(said[-1_000:])
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait(10)


WORDS = st.text("abcxyz019", min_size=1, max_size=5)
FORMATS = {
    "date": st.dates().map(str),
    "date-time": st.datetimes().map(lambda moment: moment.strftime("2%y-%m-%dT%H:%M:%SZ")),
    "uuid": st.uuids().map(str),
    "email": WORDS.map(lambda word: f"{word}@x.example"),
    "uri": WORDS.map(lambda word: f"https://x.example/{word}"),
}


def joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of what is an object of both."""
    properties = {**one.get("properties", {}), **other.get("properties", {})}
    required = [*one.get("required", ()), *other.get("required", ())]
    return {**one, **other, "properties": properties, "required": required}


def followed(schema: Any, definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without its reference."""
    beside = {key: part for key, part in schema.items() if key != "$ref"}
    return joined(followed(definitions[schema["$ref"][8:]], definitions), beside) if "$ref" in schema else schema


def values_of(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Draw what a schema takes."""
    if not isinstance(schema, Mapping):
        return WORDS
    whole = followed(schema, definitions)
    rest: Mapping[str, Any] = {key: part for key, part in whole.items() if key not in ("allOf", "anyOf")}
    for part in whole.get("allOf", ()):
        rest = joined(followed(part, definitions), rest)
    if "anyOf" in whole:
        options = [joined(rest, followed(one, definitions)) for one in whole["anyOf"]]
        return st.one_of([values_of(one, definitions, depth) for one in options])
    schema = rest
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    kind = schema.get("type", "object" if schema.get("properties") else "string")
    if isinstance(kind, list):
        return st.one_of([values_of({**schema, "type": one}, definitions, depth) for one in kind])
    return of_kind(kind, schema, definitions, depth)


def of_kind(kind: str, schema: Mapping[str, Any], definitions: Mapping[str, Any], depth: int) -> st.SearchStrategy[Any]:
    least, most = schema.get("minimum"), schema.get("maximum")
    match kind:
        case "integer" | "number":
            least = schema["exclusiveMinimum"] + 1 if "exclusiveMinimum" in schema else least
            return st.integers(-99 if least is None else int(least), 99 if most is None else int(most))
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            fewest = schema.get("minItems", 0)
            size = fewest if depth > _DEEPEST else max(fewest, 3)
            return st.lists(values_of(schema.get("items"), definitions, depth + 1), min_size=fewest, max_size=size)
        case "object":
            needed = set(schema.get("required", ()))
            properties = schema.get("properties", {})
            parts = {
                name: values_of(properties.get(name), definitions, depth + 1)
                for name in [*properties, *(needed - properties.keys())]
                if name in needed or depth <= _DEEPEST
            }
            return st.fixed_dictionaries(
                {name: part for name, part in parts.items() if name in needed},
                optional={name: part for name, part in parts.items() if name not in needed},
            )
    if "pattern" in schema:
        return st.from_regex(
            schema["pattern"].replace("$", r"\Z"), fullmatch=True, alphabet=st.characters(codec="ascii")
        )
    return FORMATS.get(schema.get("format", ""), WORDS)


def refusals(loop: asyncio.AbstractEventLoop, function: Function, *, examples: int, number: int) -> Iterator[str]:
    """Call a function with random arguments; yield what Prism refuses, made as small as it gets."""
    parameters = function.spec.parameters

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(values_of({"type": "object", **parameters}, parameters.get("$defs", {})))
    def compare(arguments: dict[str, Any]) -> None:
        try:
            loop.run_until_complete(function.callable(**function.structure_arguments(arguments)))
        except PorticoError as error:
            if _NO_ANSWER in str(error):
                return  # The document has no answer for Prism to give; it has judged the request before.
            raise AssertionError(f"{function.full_name} with {arguments}: {error}") from error

    try:
        compare()
    except AssertionError as error:
        yield str(error)


def judge(modules: Path, written: Path, meant: Path, *, examples: int, number: int) -> tuple[int, list[str]]:
    """Call all functions of a document that Prism serves as it is meant; return their number and what is wrong."""
    with prism(modules, meant) as url:
        headers = {"Authorization": Secret("Bearer x")}
        source = OpenAPIFunctions(OpenAPISettings(document=written, server=url, retries=0, secret_headers=headers))
        loop = asyncio.new_event_loop()
        plugin = loop.run_until_complete(source.load("service"))
        wrong = [f"lost: {one}" for one in source.lost]
        for function in plugin:
            wrong += refusals(loop, function, examples=examples, number=number)
        loop.run_until_complete(source.aclose())
        loop.close()
    return len(plugin.functions), wrong


def as_meant(folder: Path, into: Path) -> Path:
    """Copy a split document as its author meant it."""
    shutil.copytree(folder, into)
    for file in into.rglob("*.*"):
        text = file.read_text("utf-8")
        for pattern, replacement in MEANT:
            text = re.sub(pattern, replacement, text)
        file.write_text(text, "utf-8")
    return into


def documents(folder: Path, given: Sequence[Path], number: int) -> Iterator[tuple[Path, Path]]:
    """Yield each document with the one that is meant by it."""
    yield from ((file, file) for file in given)
    if given:
        return
    for whole in sorted(SPLIT.glob("*/openapi.*")):
        yield whole, as_meant(whole.parent, folder / whole.parent.name) / whole.name
    for place, one in zip(("written.json", "meant.json"), loose_document(Random(number), 60), strict=True):
        (folder / place).write_text(json.dumps(one), "utf-8")
    yield folder / "written.json", folder / "meant.json"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("files", nargs="*", type=Path, help="OpenAPI documents to judge instead of ours")
    arguments.add_argument("--examples", type=int, default=20)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--modules", type=Path, help="a node_modules folder that has @stoplight/prism-cli")
    chosen = arguments.parse_args()
    failed = False
    with installed(chosen.modules) as modules, tempfile.TemporaryDirectory() as folder:
        for written, meant in documents(Path(folder), chosen.files, chosen.seed):
            try:
                count, wrong = judge(modules, written, meant, examples=chosen.examples, number=chosen.seed)
            except ValueError as error:
                print(f"{written}: Prism cannot read it: {error}")
                continue
            print(f"{written}: {count} functions, {chosen.examples} calls each, {len(wrong)} wrong")
            for one in wrong:
                print(f"  {one}", file=sys.stderr)
            failed = failed or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
