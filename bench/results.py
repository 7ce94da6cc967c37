"""Write the tables of a benchmark into ``RESULTS.md``. Each section that a benchmark writes is enclosed by a start
marker and an end marker. People write the text outside the markers.
"""

from pathlib import Path

FILE = Path(__file__).parent / "RESULTS.md"


def marks(part: str) -> tuple[str, str]:
    return f"<!-- {part}: written by the benchmark -->", f"<!-- {part}: end -->"


def write(part: str, tables: str, file: Path = FILE) -> None:
    """Replace the text between the start and end markers of one section of the results file. Raises ValueError if the
    file does not have these markers.
    """
    begin, end = marks(part)
    before, _, rest = file.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{file} lacks the marks of the part {part}")
    file.write_text(f"{before}{begin}\n\n{tables.strip()}\n\n{end}{after}", encoding="utf-8")
