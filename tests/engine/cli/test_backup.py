"""The commands ``batuta backup`` and ``batuta restore``, as operators use them."""

import asyncio
import json
import stat
from pathlib import Path

import pytest

from tests.command import Command, one_sentence
from tests.julia.filled import fill_office

JULIA = ("--app", "app.main:work")
PHONE = "5511900000001"


@pytest.fixture
def julia(folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")

    def run(*words: str) -> tuple[int, str, str]:
        return batuta(*JULIA, *words)

    assert run("migrate")[0] == 0
    asyncio.run(fill_office("sqlite:///julia.db", doctors=3))
    return run


def test_backup_shows_progress_and_restore_lists_what_it_carried_over(julia: Command, folder: Path) -> None:
    code, out, err = julia("backup", "copia.batuta")
    assert code == 0, err
    assert "gravada em copia.batuta" in out
    assert "dados pessoais" in out
    assert "100% do banco de dados foi copiado" in err
    assert stat.S_IMODE((folder / "copia.batuta").stat().st_mode) == 0o600
    assert julia("optout", PHONE)[0] == 0
    code, out, err = julia("restore", "copia.batuta")
    assert code == 0, err
    assert "foi copiado do banco de dados substituído" in out
    assert "descadastros: 1" in out
    assert len(list(folder.glob("julia.db.before-restore-*"))) == 1
    assert PHONE not in out + err


def test_backup_and_restore_print_one_json_document_each(julia: Command, folder: Path) -> None:
    code, out, err = julia("backup", "copia", "--json")
    assert (code, err) == (0, "")
    made = json.loads(out)
    assert (made["database"], made["file"], made["bytes"]) == ("sqlite", "copia", (folder / "copia").stat().st_size)
    entry = json.loads(julia("sql", "SELECT action FROM audit_log WHERE subject = 'batuta backup'", "--json")[1])
    assert entry == {"rows": [{"action": "access.export"}]}
    (folder / "julia.db").unlink()
    code, out, err = julia("--lang", "en", "restore", "copia", "--json")
    assert (code, err) == (0, "")
    restored = json.loads(out)
    assert (restored["carried_over"], restored["rows"], restored["kept"]) == (False, made["rows"], None)
    assert restored["counts"]["optouts"] == 0


def test_restore_without_the_old_database_explains_the_unknown_in_english(julia: Command, folder: Path) -> None:
    julia("backup", "copia")
    (folder / "julia.db").unlink()
    code, out, _ = julia("--lang", "en", "restore", "copia")
    assert code == 0
    assert "checks with the gateway" in out


def test_file_that_is_not_a_backup_is_refused_in_one_sentence(julia: Command, folder: Path) -> None:
    (folder / "photo").write_bytes(b"GIF89a" * 100)
    code, _, err = julia("restore", "photo")
    assert (code, one_sentence(err)) == (2, True)
    assert "nada foi alterado" in err
    code, _, err = julia("restore", "missing")
    assert (code, one_sentence(err)) == (2, True)


def test_backup_of_a_database_without_a_schema_names_the_next_step(folder: Path, batuta: Command) -> None:
    code, _, err = batuta("backup", "copia")
    assert (code, one_sentence(err)) == (2, True)
    assert "batuta migrate" in err
    assert not (folder / "copia").exists()
    assert not (folder / "work.db").exists()


def test_removal_shows_only_the_last_digits_of_the_number(julia: Command) -> None:
    code, out, err = julia("remover", PHONE, "--motivo", "pediu por telefone")
    assert (code, "terminado em 0001" in out, PHONE in out + err) == (0, True, False)
