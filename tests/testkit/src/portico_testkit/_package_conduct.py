"""What the sources of a package do to those who run it: whether they can be stopped, and whether they stop others.

These are the mistakes that can be seen without running anything. That a service is stopped in the middle of a call,
and that it is asked many things at a time, is for the kit of its port.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

__all__ = ["blocking_calls", "swallowed_cancellations"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_BLOCKING = {
    "time.sleep": "await asyncio.sleep",
    "urllib.request.urlopen": "take an HttpClient from the services",
    "socket.create_connection": "await asyncio.open_connection",
    "socket.getaddrinfo": "await the loop's getaddrinfo",
    **dict.fromkeys(("os.system", "os.popen"), "await asyncio.create_subprocess_exec"),
    **{
        f"subprocess.{name}": "await asyncio.create_subprocess_exec"
        for name in ("run", "call", "check_call", "check_output", "getoutput", "getstatusoutput")
    },
    **{
        f"{package}.{name}": "take an HttpClient from the services"
        for package in ("requests", "httpx")
        for name in ("get", "post", "put", "patch", "delete", "head", "options", "request", "stream")
    },
}


def swallowed_cancellations(folder: Path) -> Iterator[str]:
    """Yield each place in a folder's modules that keeps the wish to stop to itself.

    That is a handler of every exception there is, or of ``asyncio.CancelledError`` where something is awaited, which
    neither raises nor uses the error that it was given; and a ``finally`` that is left before its end. In a function
    that cancels something itself, waiting for the end of that looks the same, and is fine.
    """
    for where, tree, names in _modules(folder):
        for function, node in _nodes(tree, None):
            if isinstance(node, ast.Try | ast.TryStar):
                for handler in node.handlers:
                    caught = _caught(handler.type, names)
                    if caught and not _passed_on(handler) and _reaches(caught, node.body, function):
                        yield f"{where}:{handler.lineno} {_written(caught)} and goes on"
                    if caught:
                        break  # the handlers after it are not asked
                left = _left_early(node.finalbody)
                if left is not None and _reaches("everything", node.body, function):
                    yield f"{where}:{left.lineno} leaves a finally by {type(left).__name__.lower()} and goes on"
            elif isinstance(node, ast.With | ast.AsyncWith):
                for item in node.items:
                    suppressed = _suppressed(item.context_expr, names)
                    if suppressed and _reaches(suppressed, node.body, function):
                        yield f"{where}:{node.lineno} suppresses {suppressed} and goes on"


def blocking_calls(folder: Path) -> Iterator[str]:
    """Yield each call in an asynchronous function that nothing else can go on beside, and what to do in its place."""
    for where, tree, names in _modules(folder):
        for function, node in _nodes(tree, None):
            if isinstance(function, ast.AsyncFunctionDef) and isinstance(node, ast.Call):
                called = _full_name(node.func, {**names, **dict.fromkeys(_parameters(function), "")})
                if called in _BLOCKING:
                    advice = f"{_BLOCKING[called]}, or asyncio.to_thread"
                    yield f"{where}:{node.lineno} calls {called} in {function.name}: {advice}"


def _modules(folder: Path) -> Iterator[tuple[str, ast.Module, dict[str, str]]]:
    """Yield each module: where it is, what it says, and what the names mean that it imports, anywhere in it."""
    for file in sorted(folder.rglob("*.py")):
        tree = ast.parse(file.read_bytes(), str(file))
        names: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    names[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        yield file.relative_to(folder.parent).as_posix(), tree, names


def _nodes(node: ast.AST, function: _Function | None) -> Iterator[tuple[_Function | None, ast.AST]]:
    """Yield every node below one, with the function whose body it is in."""
    inner = node if isinstance(node, _Function) else function
    for child in ast.iter_child_nodes(node):
        yield inner, child
        yield from _nodes(child, inner)


def _caught(caught: ast.expr | None, names: dict[str, str]) -> str:
    """Return the name of what a handler takes that cancellation is among, `""` where it is not."""
    if caught is None:
        return "everything"
    every = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    for each in every:
        name = _full_name(each, names)
        if name in {"BaseException", "builtins.BaseException"}:
            return "BaseException"
        if name in {"asyncio.CancelledError", "asyncio.exceptions.CancelledError"}:
            return "CancelledError"
    return ""


def _suppressed(called: ast.expr, names: dict[str, str]) -> str:
    if isinstance(called, ast.Call) and _full_name(called.func, names) == "contextlib.suppress":
        return next((name for each in called.args if (name := _caught(each, names))), "")
    return ""


def _passed_on(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler raises, ends the program, or does something with the error that it names."""
    for _, node in _nodes(handler, None):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Name) and node.id == handler.name and handler.name is not None:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"exit", "_exit"}:
            return True
    return False


def _left_early(body: list[ast.stmt], in_loop: bool = False) -> ast.Return | ast.Break | ast.Continue | None:
    """Return the statement by which a ``finally`` is left before its end, and with it whatever was raised."""
    for node in body:
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not in_loop):
            return node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        within = in_loop or isinstance(node, ast.For | ast.AsyncFor | ast.While)
        parts = ast.iter_child_nodes(node)
        inner = [part for part in parts if isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case)]
        blocks = [part for each in inner for part in ([each] if isinstance(each, ast.stmt) else each.body)]
        left = _left_early(blocks, within)
        if left is not None:
            return left
    return None


def _parameters(function: _Function) -> Iterator[str]:
    given = function.args
    for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if parameter is not None:
            yield parameter.arg


def _reaches(caught: str, body: list[ast.stmt], function: _Function | None) -> bool:
    """Return whether what is caught, or a wish to stop, can come out of a block."""
    if function is None:
        return False  # at import: an optional dependency that fails to load is guarded so
    inside = [node for statement in body for node in (statement, *(below for _, below in _nodes(statement, None)))]
    awaited = any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith | ast.Yield) for node in inside)
    if isinstance(function, ast.AsyncFunctionDef) or caught == "CancelledError":
        return awaited and not _cancels(function)
    return True


def _cancels(function: _Function) -> bool:
    calls = (node for _, node in _nodes(function, None) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Attribute) and call.func.attr == "cancel" for call in calls)


def _written(caught: str) -> str:
    return "catches everything" if caught == "everything" else f"catches {caught}"


def _full_name(node: ast.expr, names: dict[str, str]) -> str:
    """Return the dotted name that an expression is, with the module that its first part comes from.

    It is empty for what is neither imported nor built in: a variable may be named as a library is.
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    first = names.get(node.id, node.id if hasattr(builtins, node.id) else "")
    return ".".join([first, *reversed(parts)]) if first else ""
