from datetime import UTC, datetime

from tests.faults.__main__ import AFTERWORD, DOCUMENT, PARTS, TITLES, cells, document, measured_in, merge_rows, preface

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
    rows = merge_rows(text, [])
    assert text.startswith(preface(measured_in(rows)))
    assert text.endswith(AFTERWORD)
    assert [row for row in rows if len(row) != len(TITLES)] == []


def test_preface_names_exactly_the_tests_that_have_figures() -> None:
    named = {test for _, tests, *_ in PARTS for test in tests.split()}
    measured = measured_in(merge_rows(DOCUMENT.read_text(encoding="utf-8"), []))
    assert measured - named == set(), "add these tests to PARTS in tests/faults/__main__.py"
    assert "T01" in preface({"T01"})
    assert "T02" not in preface({"T01"})
