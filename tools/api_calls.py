"""What each call of the API answers with, read from the tables of calls and the annotations of what they call.

A table is a dictionary of patterns, methods and handlers in a module that uses `Calls`. A handler is the name of a
function, or a lambda or a wrapper around the method that answers, such as `_post_handler(StopWanted, …)`.
"""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, NoneType, SimpleNamespace, UnionType
from typing import Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

SOURCES = Path(__file__).resolve().parent.parent / "src"
_USES_CALLS = re.compile(r"^from sightline\.web\.routes import .*\bCalls\b", re.MULTILINE)
_METHODS = {"GET", "POST", "PUT", "DELETE"}
_BELOW: Final = {"_CALLS": "chat/"}
"""Where the patterns of a table begin that is below a path of its own."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class ApiAnswer(NamedTuple):
    """`path` is a pattern as in `exchanges/*/body`, `kind` the annotation of what is answered."""

    method: str
    path: str
    kind: Any


def api_answers() -> Iterator[ApiAnswer]:
    """All calls in the tables. Exits where one cannot be read."""
    for file in sorted(SOURCES.rglob("*.py")):
        text = file.read_text("utf-8")
        if _USES_CALLS.search(text):
            name = ".".join(file.relative_to(SOURCES).with_suffix("").parts)
            yield from _Reader(importlib.import_module(name)).read(ast.parse(text), {}, "")


class _Reader:
    """Reads one module. A scope has the annotations of what has a name in it, or the functions."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def read(self, node: ast.AST, scope: Mapping[str, Any], below: str) -> Iterator[ApiAnswer]:
        if isinstance(node, _Function):
            scope = {**scope, **self._names_in(node, scope)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            below = _BELOW.get(node.target.id, below)
        elif isinstance(node, ast.Dict):
            for pattern, table in zip(node.keys, node.values, strict=True):
                if isinstance(pattern, ast.Constant) and isinstance(table, ast.Dict):
                    for method, handler in zip(table.keys, table.values, strict=True):
                        if isinstance(method, ast.Constant) and method.value in _METHODS:
                            kind = self._answer(handler, scope)
                            if kind is None:
                                where = f"{self._module.__name__}:{handler.lineno}"
                                raise SystemExit(f"{where}: it cannot be told what this call answers with")
                            yield ApiAnswer(str(method.value), below + str(pattern.value), kind)
        for child in ast.iter_child_nodes(node):
            yield from self.read(child, scope, below)

    def _names_in(self, function: _Function, scope: Mapping[str, Any]) -> dict[str, Any]:
        named = [*function.args.args, *function.args.kwonlyargs]
        found: dict[str, Any] = {each.arg: self._hint(each.annotation) for each in named if each.annotation}
        for each in function.body:
            if isinstance(each, _Function):
                found[each.name] = each
            elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                found[each.targets[0].id] = self._kind(each.value, {**scope, **found})
        return found

    def _answer(self, handler: ast.expr, scope: Mapping[str, Any]) -> Any:
        """What a handler, or a function that one is made of, returns; None where it cannot be told."""
        match handler:
            case ast.Lambda(body=body):
                return self._kind(body, scope)
            case ast.Call(func=ast.Name(id="partial"), args=[inner, *_]):
                return self._answer(inner, scope)
            case ast.Call(args=[*_, inner]):
                return self._answer(inner, scope)
            case ast.Name(id=name) if get_args(scope.get(name)):
                return get_args(scope[name])[-1]  # a parameter that can be called
            case ast.Name() | ast.Attribute():
                return self._returned(handler, scope)
            case _:
                return None

    def _kind(self, value: ast.expr, scope: Mapping[str, Any]) -> Any:
        """The kind of a value: what a call returns, or how an attribute is annotated. None where it cannot be told."""
        match value:
            case ast.Call(func=ast.Name(id=name)) if isinstance(getattr(self._module, name, None), type):
                return getattr(self._module, name)
            case ast.Call(func=ast.Name() | ast.Attribute() as function):
                return self._returned(function, scope)
            case ast.Name(id=name):
                return scope.get(name) or getattr(self._module, name, None)
            case ast.Attribute(value=owner, attr=name):
                return _attribute(_without_none(self._kind(owner, scope)), name)
            case _:
                return None

    def _returned(self, function: ast.expr, scope: Mapping[str, Any]) -> Any:
        match function:
            case ast.Name(id=name):
                found = scope.get(name) or getattr(self._module, name, None)
                if isinstance(found, _Function):
                    return self._hint(found.returns)
            case ast.Attribute(value=owner, attr=name):
                found = getattr(_without_none(self._kind(owner, scope)), name, None)
            case _:
                found = None
        hints = getattr(found, "__annotations__", {})
        return _resolve(hints["return"], found.__globals__) if found and "return" in hints else None

    def _hint(self, annotation: ast.expr | None) -> Any:
        return None if annotation is None else _resolve(ast.unparse(annotation), vars(self._module))


def _attribute(owner: Any, name: str) -> Any:
    """The kind of an attribute: as it is annotated, or as the constructor of its owner makes it."""
    found = getattr(owner, name, None)
    if isinstance(found, property):
        assert found.fget is not None
        return _resolve(found.fget.__annotations__["return"], found.fget.__globals__)
    if not isinstance(owner, type):
        return None
    hints = getattr(owner, "__annotations__", {})
    module = importlib.import_module(owner.__module__)
    if name in hints:
        return _resolve(hints[name], vars(module))
    reader = _Reader(module)
    for each in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8"))):
        if isinstance(each, ast.ClassDef) and each.name == owner.__name__:
            for function in (one for one in each.body if isinstance(one, _Function) and one.name == "__init__"):
                scope = reader._names_in(function, {})
                for line in function.body:
                    match line:
                        case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value) if attr == name:
                            return reader._kind(value, scope)
    return None


def _resolve(hint: Any, names: dict[str, Any]) -> Any:
    """An annotation, which may be text, as the type that it names."""
    holder = SimpleNamespace(__annotations__={"it": hint})
    try:
        return get_type_hints(holder, names)["it"]
    except NameError:  # it is imported for types alone
        return None


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        others = [each for each in get_args(kind) if each is not NoneType]
        return others[0] if len(others) == 1 else kind
    return kind
