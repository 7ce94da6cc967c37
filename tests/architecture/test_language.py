"""The repository's prose follows the style rules, for example by naming components as subjects and using plain
words.
"""

import pytest

from scripts.language import Kind, Prose, check, files, is_suspect, read


def test_no_file_has_a_banned_phrase() -> None:
    suspects = (file for file in files() if file.suffix != ".py" or is_suspect(file.read_text(encoding="utf-8")))
    hits = [str(hit) for hit in check(prose for file in suspects for prose in read(file))]
    assert hits == [], "rewrite these phrases; `python3 scripts/language.py PATH` lists them\n" + "\n".join(hits)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("docstring", "Stop whoever claims it."),
        ("docstring", "Stop whomever it names."),
        ("comment", "somebody else owns the lease"),
        ("comment", "Nobody's lease expires here."),
        ("document", "The parent is told at once."),
        ("text", "the worker starts anew"),
        ("text", "besides, it waits"),
        ("document", "A message in doubt is no failure."),
        ("document", "Two of them are\nno items."),
        ("docstring", "Cancel it before he writes his result."),
        ("document", "Julia stores the row before she answers."),
        ("comment", "the row stays for ever"),
        ("docstring", "Return the id, also if it is unknown."),
        ("docstring", "Return the reason against a message."),
        ("comment", "the loop goes on"),
        ("comment", "it ends all the same"),
        ("comment", "costs next to nothing"),
        ("comment", "not without its lease"),
        ("comment", "another one's row"),
        ("docstring", "What the worker claims."),
        ("docstring", "Those that wait."),
        ("docstring", "That which waits."),
        ("comment", "Where nothing waits, return."),
        ("document", "The worker stops. What it held returns."),
        ("document", "What it held is released."),
        ("name", "test what waits is claimed"),
        ("name", "was told"),
    ],
)
def test_banned_phrase_is_a_hit(kind: Kind, text: str) -> None:
    assert check([Prose("app/file.py", 1, kind, text)]) != []
    assert is_suspect(text.replace(" ", "_") if kind == "name" else text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("docstring", "There is no lease for an item that no longer waits."),
        ("docstring", "A batch is no larger than its limit."),
        ("document", "What happens if the parent dies? The children end."),
        ("document", "The operator sees `is no offer` there."),
        ("comment", "what must not run twice at a time"),
        ("name", "is notified"),
    ],
)
def test_plain_sentence_is_not_a_hit(kind: Kind, text: str) -> None:
    assert check([Prose("app/file.py", 1, kind, text)]) == []


def test_hit_names_its_file_its_line_and_a_suggestion() -> None:
    (hit,) = check([Prose("app/file.py", 7, "docstring", "Release the items.\n\nThe queue goes on.")])
    assert str(hit) == "app/file.py:9: docstring: 'goes on' (continues): The queue goes on."


def test_migrations_are_skipped_because_their_checksum_forbids_edits() -> None:
    names = {file.name for file in files()}
    assert "0001_engine.sql" not in names
    assert "queue.sql" in names


def test_operators_texts_are_read_without_their_keys() -> None:
    texts = [prose.text for file in files() if file.name == "pt_BR.toml" for prose in read(file)]
    assert [each for each in texts if '" = "' in each] == []
    assert len(texts) > 1_000
