from datetime import UTC, datetime

from tests.faults.__main__ import AFTERWORD, DOCUMENT, PREFACE, TITLES, cells, document, merge_rows

DAY = datetime(2026, 1, 5, tzinfo=UTC)


def row(test: str, note: str) -> dict[str, object]:
    seen = {
        "test": test,
        "database": "SQLite",
        "done": "kill -9",
        "targets": 7,
        "missed": 0,
        "note": note,
        "took": 1.25,
    }
    return {"doubled": None, "early": None, "unexplained": None, **seen}


def test_run_of_some_files_renews_only_its_own_rows() -> None:
    before = document(cells([row("T01", "old"), row("T02", "a / b")], DAY))
    after = document(merge_rows(before, cells([row("T01", "new")], datetime(2026, 1, 6, tzinfo=UTC))))
    assert "| T01 | SQLite | kill -9 | 7 | 0 | – | – | – | 1.2 s | new | 2026-01-06 |" in after
    assert "| T02 | SQLite | kill -9 | 7 | 0 | – | – | – | 1.2 s | a / b | 2026-01-05 |" in after
    assert "| old |" not in after


def test_document_has_the_text_of_its_generator() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.startswith(PREFACE)
    assert text.endswith(AFTERWORD)
    assert [row for row in merge_rows(text, []) if len(row) != len(TITLES)] == []
