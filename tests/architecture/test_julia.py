"""The layout of ``app/``: which module may import which, and how folders and names stay easy to find."""

import ast
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[2]
APP = ROOT / "app"
# A context offers these modules to the others; ``comum`` is open as a whole.
INTERFACES = ("service", "api")
SHARED = "comum"
LARGEST_FOLDER = 13


def imports(file: Path) -> Iterator[ast.ImportFrom]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node


def context_of(file: Path) -> str:
    return file.relative_to(APP / "contexts").parts[0]


def test_contexts_import_each_other_only_through_their_interface() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno} imports {node.module}"
        for file in sorted((APP / "contexts").glob("*/**/*.py"))
        for node in imports(file)
        if (parts := str(node.module).split("."))[:2] == ["app", "contexts"]
        and (len(parts) < 3 or parts[2] not in (context_of(file), SHARED))
        and (len(parts) != 4 or parts[3] not in INTERFACES)
    ]
    assert found == []


def test_an_interface_names_every_name_it_exports() -> None:
    for file in sorted((APP / "contexts").glob("*/api.py")):
        tree = ast.parse(file.read_text())
        defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        if defined:
            continue  # the context's own values live here
        imported = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
        exported = next(
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        )
        assert sorted(exported) == sorted(imported), file


def test_no_folder_has_more_files_than_a_reader_can_scan() -> None:
    sizes = {str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) for folder in folders()}
    assert {folder: size for folder, size in sizes.items() if size > LARGEST_FOLDER} == {}


def test_no_two_siblings_differ_by_one_letter() -> None:
    alike = [
        f"{folder.relative_to(ROOT)}: {one}, {other}"
        for folder in folders()
        for one, other in combinations(sorted(names_in(folder)), 2)
        if differ_by_one_letter(one, other)
    ]
    assert alike == []


def folders() -> list[Path]:
    inside = (folder for folder in APP.rglob("*") if folder.is_dir() and "__pycache__" not in folder.parts)
    return [APP, *sorted(inside)]


def names_in(folder: Path) -> set[str]:
    return {entry.stem for entry in folder.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").exists()}


def differ_by_one_letter(one: str, other: str) -> bool:
    if len(one) == len(other):
        return sum(a != b for a, b in zip(one, other, strict=True)) == 1
    short, long = sorted((one, other), key=len)
    return len(long) == len(short) + 1 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
