"""Writes REFERENCE.md from what the modules say of themselves: `python tests/reference.py`."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Union

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "godwit"
FILE = ROOT / "REFERENCE.md"

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
HEAD = """# Reference

Written by `python tests/reference.py` from the modules, whose words these are. What is `async` is awaited.
"""


def text() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, folder in (("godwit", PACKAGE), ("godwit.quic", PACKAGE / "quic")):
        parts.append(f"## {title}\n")
        for name, file in exported(folder):
            nodes = ast.parse(file.read_text(encoding="utf-8")).body
            parts.extend(described(node, title) for node in nodes if getattr(node, "name", None) == name)
    return "\n".join(parts)


def exported(folder: Path) -> list[tuple[str, Path]]:
    """What a package gives away, and where it is: what it imports from its own modules, in its order."""
    found = []
    for node in ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            file = folder / f"{node.module}.py"
            found += [(alias.name, file) for alias in node.names if file.exists()]
    return found


def described(node: ast.stmt, module: str) -> str:
    if isinstance(node, FUNCTIONS):
        return f"### {module}.{node.name}\n\n{signature(node)}\n{words(node)}"
    assert isinstance(node, ast.ClassDef)
    below = ", ".join(f"`{ast.unparse(base)}`" for base in node.bases)
    parts = [f"### {module}.{node.name}\n", f"Below {below}.\n" if below else "", words(node)]
    for item, after in zip(node.body, [*node.body[1:], None]):
        if isinstance(item, FUNCTIONS) and (item.name == "__init__" and words(item) or not item.name.startswith("_")):
            parts.append(f"{signature(item)}\n{words(item)}")
        elif isinstance(item, ast.AnnAssign):
            parts.append(f"```text\n{ast.unparse(item.target)}: {ast.unparse(item.annotation)}\n```\n")
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                parts.append(f"{inspect.cleandoc(str(after.value.value))}\n")
    return "\n".join(part for part in parts if part)


def signature(node: Function) -> str:
    """As it is written, with a line for each parameter if it is long."""
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    marks = {ast.unparse(mark) for mark in node.decorator_list}
    if "contextlib.asynccontextmanager" in marks:
        kind = "async with"
    result = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    if "property" in marks:
        return f"```text\n{node.name}{result.replace(' -> ', ': ')}\n```\n"
    parameters = ast.unparse(node.args)
    line = f"{kind} {node.name}({parameters}){result}"
    if len(line) > 110:
        each = "".join(f"    {one},\n" for one in split(parameters))
        line = f"{kind} {node.name}(\n{each}){result}"
    return f"```text\n{line}\n```\n"


def split(parameters: str) -> list[str]:
    """At the commas that are not within brackets."""
    pieces, depth = [""], 0
    for letter in parameters:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces]


def words(node: ast.ClassDef | Function) -> str:
    found = ast.get_docstring(node)
    return "" if found is None else f"{listed(inspect.cleandoc(found))}\n"


def listed(text: str) -> str:
    """With the lines that explain a parameter as a list."""
    lines = []
    for line in text.split("\n"):
        name, colon, _ = line.partition(": ")
        is_parameter = bool(colon) and all(word.strip().isidentifier() for word in name.split(","))
        lines.append(f"- `{name}`: {line[len(name) + 2:]}" if is_parameter else line)
    return "\n".join(lines)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
