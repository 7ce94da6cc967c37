"""Write the tables of a run into ``RESULTS.md``, between two marks per part. People write the text outside the marks."""

from pathlib import Path

FILE = Path(__file__).parent / "RESULTS.md"


def marks(part: str) -> tuple[str, str]:
    return f"<!-- {part}: written by the benchmark -->", f"<!-- {part}: end -->"


def write(part: str, tables: str, file: Path = FILE) -> None:
    """Replace the text between the marks of a part. Raises ValueError if the file does not have these marks."""
    begin, end = marks(part)
    before, _, rest = file.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{file} lacks the marks of the part {part}")
    file.write_text(f"{before}{begin}\n\n{tables.strip()}\n\n{end}{after}", encoding="utf-8")
