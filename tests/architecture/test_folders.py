"""Folders are small, and the names of sibling files differ clearly, so that a reader who opens a folder finds the file
to change.
"""

from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("src/batuta", "app", "simulador")
LARGEST_FOLDER = 14  # files without __init__.py
# Folders that may be large, because their files form a list and a reader finds a file by its name.
CATALOGUES = {
    "src/batuta": "the public modules, one per subject",
    "src/batuta/stores/sql/schema": "numbered migrations",
    "src/batuta/stores/sql/statements": "one file of statements per store",
    "src/batuta/web/templates/panel": "one template per page",
    "app/schema": "numbered migrations",
}
# The public module has the plural of the package behind it (docs/decisions/0035).
ALIKE = {("src/batuta", "guard", "guards"), ("src/batuta", "queue", "queues")}


def test_no_folder_has_more_files_than_a_reader_can_scan() -> None:
    sizes = {name(folder): len(files_in(folder)) for folder in folders()}
    assert {folder for folder, size in sizes.items() if size > LARGEST_FOLDER} == set(CATALOGUES)


def test_no_two_siblings_differ_by_one_letter() -> None:
    alike = {
        (name(folder), one, other)
        for folder in folders()
        for one, other in combinations(sorted(modules_in(folder)), 2)
        if differ_by_one_letter(one, other)
    }
    assert alike == ALIKE


def folders() -> list[Path]:
    roots = [ROOT / source for source in SOURCES]
    inside = (folder for root in roots for folder in root.rglob("*") if folder.is_dir())
    return [*roots, *(folder for folder in sorted(inside) if "__pycache__" not in folder.parts)]


def name(folder: Path) -> str:
    return folder.relative_to(ROOT).as_posix()


def files_in(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if entry.is_file() and entry.name != "__init__.py"]


def modules_in(folder: Path) -> set[str]:
    return {entry.stem for entry in folder.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").exists()}


def differ_by_one_letter(one: str, other: str) -> bool:
    if len(one) == len(other):
        return sum(a != b for a, b in zip(one, other, strict=True)) == 1
    short, long = sorted((one, other), key=len)
    return len(long) == len(short) + 1 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
