"""SQL is written, never put together from values: nothing that was pushed can become a part of it.

Ruff's S608 finds SQL that is formatted, where it looks like SQL. This finds everything that is handed to
Postgres and is not a literal, a name that only ever holds one, a sum of those, or one with names that
psycopg quotes.
"""

import ast
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

import petard_worker

SOURCE = Path(petard_worker.__file__).parent
CALLS = {"execute", "executemany", "copy", "stream"}
OWN_FILES = {
    # Runs the files of migrations/, which are ours, and literals with a role's quoted name.
    "postgres/migrate.py",
}


def statements(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what is handed to Postgres as the statement."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in CALLS
            and node.args
        ):
            yield node.args[0]


def literals(tree: ast.AST, shared: Set[str] = frozenset()) -> set[str]:
    """Return the names that are only ever given plain texts, or sums of those."""
    given: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        elif isinstance(node, ast.AugAssign):
            targets, value = [node.target], None
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                given.setdefault(target.id, []).append(value)
    known: set[str] = set()
    while more := {
        name
        for name, values in given.items()
        if name not in known and all(value and is_safe(value, known | shared) for value in values)
    }:
        known |= more
    return known


def is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def is_safe(node: ast.expr, known: Set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in known
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return is_safe(left, known) and is_safe(right, known)
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Attribute(attr="SQL"), args=[text]), attr="format"),
            args=[ast.Call(func=ast.Attribute(attr="Identifier"))],
        ):
            return is_text(text)
    return is_text(node)


def composed(source: str, shared: Set[str] = frozenset()) -> list[str]:
    """Return what is handed to Postgres and is put together; `shared` names are literals elsewhere."""
    tree = ast.parse(source)
    known = literals(tree, shared) | shared
    return [ast.unparse(statement) for statement in statements(tree) if not is_safe(statement, known)]


def test_every_statement_is_a_literal() -> None:
    sources = {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")
    }
    shared = {name for source in sources.values() for name in literals(ast.parse(source)) if name.isupper()}

    found = {name: wrong for name, source in sources.items() if (wrong := composed(source, shared))}

    assert found.keys() == OWN_FILES, found


@pytest.mark.parametrize(
    "source",
    [
        'connection.execute(f"SELECT {name}")',
        'connection.execute("SELECT " + name)',
        'connection.execute("SELECT %s" % name)',
        'connection.execute("SELECT {}".format(name))',
        'sql = "SELECT 1"\nsql += name\nconnection.execute(sql)',
        'sql = f"SELECT {name}"\nconnection.execute(sql)',
        'sql = "SELECT 1"\nconnection.execute(sql + name)',
        "connection.execute(sql.SQL(text).format(sql.Identifier(name)))",
        "cursor.copy(statement)",
    ],
)
def test_a_statement_that_is_put_together_is_found(source: str) -> None:
    assert composed(source)
