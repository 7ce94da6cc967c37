"""Hostile files: a child process with little memory rejects or truncates them and reports the reason. The parent
process continues.
"""

import io
import re
import struct
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.contexts.agendamentos.model import recusada
from app.contexts.agendamentos.planilha.arquivo import _FAR, _UNCOUNTED, MOST_ROWS, MOST_UNPACKED
from app.contexts.agendamentos.planilha.leitor import CPU_SECONDS, MEMORY, MOST_FILES
from app.contexts.agendamentos.planilha.linhas import MotivoDaLinha, Problema, Recusa
from app.contexts.agendamentos.planilha.processo import LeitorDeArquivos
from batuta.kernel.clock import SystemClock
from tests.julia.agendamentos.sheets import HEADER, package, patient, sheet_xml, xlsx

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
DTD = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
_ROW = '<row r="{0}"><c r="A{0}" t="inlineStr"><is><t>x</t></is></c></row>'


def with_sheet(inner: str) -> bytes:
    filled = sheet_xml([HEADER, patient()])
    return xlsx([], sheet=filled.replace("</sheetData>", f"{inner}</sheetData>"))


def lying_about_its_size() -> bytes:
    """Return an XLSX package whose directory gives a size of ten bytes for a part that unpacks to megabytes."""
    content = bytearray(package({"[Content_Types].xml": "x", "xl/workbook.xml": "0" * 5_000_000}))
    where = content.rindex(b"PK\x01\x02")
    content[where + 24 : where + 28] = struct.pack("<I", 10)
    return bytes(content)


def encrypted_part() -> bytes:
    content = bytearray(xlsx([HEADER]))
    for mark, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(mark)
        content[at + flag] |= 1
    return bytes(content)


def many_parts() -> bytes:
    return package({"xl/workbook.xml": "x"} | {f"xl/p{n}.xml": "x" for n in range(1500)})


def hostile() -> Iterator[tuple[str, Callable[[], bytes], MotivoDaLinha]]:
    yield "a bomb", lambda: package({"xl/workbook.xml": b"0" * (MOST_UNPACKED + 1)}), MotivoDaLinha.GRANDE
    yield "a small bomb", lambda: package({"xl/workbook.xml": b"0" * 30_000_000}), MotivoDaLinha.PERIGOSA
    yield (
        "a bomb beside a good sheet",
        lambda: xlsx([HEADER, patient()], extra={"xl/media/x.bin": b"0" * (MOST_UNPACKED + 1)}),
        MotivoDaLinha.GRANDE,
    )
    yield "a false size", lambda: lying_about_its_size(), MotivoDaLinha.ILEGIVEL
    yield "too many parts", lambda: many_parts(), MotivoDaLinha.GRANDE
    yield (
        "an entity of the sheet",
        lambda: xlsx([], sheet=sheet_xml([HEADER, patient()], before=DTD)),
        MotivoDaLinha.PERIGOSA,
    )
    yield (
        "entities of entities",
        lambda: xlsx([], sheet=sheet_xml([HEADER, patient()], before=LAUGHS)),
        MotivoDaLinha.PERIGOSA,
    )
    yield (
        "an entity elsewhere",
        lambda: xlsx([HEADER, patient()], extra={"docProps/core.xml": DTD.encode()}),
        MotivoDaLinha.PERIGOSA,
    )
    yield (
        "an entity in other letters",
        lambda: xlsx([HEADER], extra={"docProps/core.xml": f"<?xml?>{DTD}".encode("utf-16")}),
        MotivoDaLinha.PERIGOSA,
    )
    yield (
        "the last cell there can be",
        lambda: with_sheet('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
        MotivoDaLinha.GRANDE,
    )
    yield "a far row", lambda: with_sheet(_ROW.format(MOST_ROWS + 1)), MotivoDaLinha.GRANDE
    yield "a far column", lambda: with_sheet('<row r="3"><c r="ZZZ3"><v>1</v></c></row>'), MotivoDaLinha.GRANDE
    yield (
        "a password",
        lambda: OLE + b"\x00" * 600 + "EncryptedPackage".encode("utf-16-le") + b"\x00" * 600,
        MotivoDaLinha.PROTEGIDA,
    )
    yield "a part with a password", lambda: encrypted_part(), MotivoDaLinha.PROTEGIDA
    yield "macros", lambda: xlsx([HEADER, patient()], extra={"xl/vbaProject.bin": b"\x00"}), MotivoDaLinha.MACROS
    yield "an old file that is none", lambda: OLE + b"\x00" * 4096, MotivoDaLinha.ILEGIVEL
    yield "half a file", lambda: xlsx([HEADER, patient()])[:400], MotivoDaLinha.ILEGIVEL
    yield "a file without its end", lambda: xlsx([HEADER, patient()])[:-30], MotivoDaLinha.ILEGIVEL
    yield "an archive of something else", lambda: package({"a.txt": "x"}), MotivoDaLinha.NAO_E_PLANILHA
    yield (
        "an archive in an archive",
        lambda: package({"x.xlsx": xlsx([HEADER, patient()])}),
        MotivoDaLinha.NAO_E_PLANILHA,
    )
    yield "no workbook", lambda: package({"xl/styles.xml": "<x/>"}), MotivoDaLinha.ILEGIVEL
    yield "a sheet that is no XML", lambda: xlsx([], sheet="<worksheet><sheetData><row><c>"), MotivoDaLinha.ILEGIVEL
    yield "a picture", lambda: b"\x89PNG\r\n\x1a\n" + b"\x00" * 100, MotivoDaLinha.NAO_E_PLANILHA
    yield "a program", lambda: b"MZ" + b"\x00" * 100, MotivoDaLinha.NAO_E_PLANILHA
    yield "nothing but zeros", lambda: b"\x00" * 5000, MotivoDaLinha.VAZIA
    yield "too long", lambda: b"PK\x03\x04" + b"x" * 10 * 1024 * 1024, MotivoDaLinha.GRANDE


@pytest.mark.parametrize(("make", "motivo"), [pytest.param(make, motivo, id=name) for name, make, motivo in hostile()])
async def test_hostile_file_is_refused_with_its_reason(make: Callable[[], bytes], motivo: MotivoDaLinha) -> None:
    with pytest.raises(Recusa) as refused:
        await LeitorDeArquivos(SystemClock()).ler(make(), "agenda.xlsx")
    assert refused.value.motivo is motivo
    sentence = str(recusada(refused.value))
    assert "{" not in sentence
    assert re.search(r"\b(linhas?|colunas?|partes|dados|texto|tamanho|uma?|outra|é)\b", sentence) is None
    assert any(word in sentence for word in ("send", "split", "Remove"))  # the sentence names the next step


async def test_million_empty_rows_count_as_nothing() -> None:
    empty = "".join(f'<row r="{n}"/>' for n in range(3, 1_000_003))
    read = await LeitorDeArquivos(SystemClock()).ler(with_sheet(empty), "agenda.xlsx")
    assert (read.total, len(read.linhas)) == (1, 1)


async def test_formatted_empty_cells_count_as_nothing() -> None:
    empty = "".join(f'<row r="{n}"><c r="A{n}" s="1"/><c r="J{n}" s="1"/></row>' for n in range(60_000, 160_000))
    read = await LeitorDeArquivos(SystemClock()).ler(with_sheet(empty), "agenda.xlsx")
    assert (read.total, len(read.linhas)) == (1, 1)


async def test_long_text_is_cut_and_a_repeated_header_counts_once() -> None:
    header = [*HEADER, "Nome do Paciente", "CONVENIO"]
    row = [*patient(Observações="x" * 20_000), "Outra", "Outro"]
    read = await LeitorDeArquivos(SystemClock()).ler(xlsx([header, row]), "agenda.xlsx")
    assert {(each.linha, each.problema) for each in read.avisos} == {
        (1, Problema.COLUNA_REPETIDA), (2, Problema.TEXTO_CORTADO),
    }  # fmt: skip
    assert len(str(read.linhas[0]["observacoes"])) == 2000
    assert read.linhas[0]["nome_paciente"] == "Pessoa Fictícia 00001"


async def test_dates_count_from_1904_when_the_file_says_so() -> None:
    for workbook, day in (("", "2026-03-11"), ('<workbookPr date1904="1"/>', "2030-03-12")):
        read = await LeitorDeArquivos(SystemClock()).ler(
            xlsx([HEADER, patient(Data=46092)], workbook=workbook), "agenda.xlsx"
        )
        assert read.linhas[0]["data_agendamento"] == day


async def test_hidden_sheet_is_not_mistaken_for_the_first() -> None:
    made = xlsx([HEADER, patient()])
    with zipfile.ZipFile(io.BytesIO(made)) as packed:
        parts: dict[str, str | bytes] = {name: packed.read(name) for name in packed.namelist()}
    xml = bytes(parts["xl/workbook.xml"]).decode()  # type: ignore[arg-type]
    parts["xl/workbook.xml"] = xml.replace(
        "<sheets>", '<sheets><sheet name="X" sheetId="2" state="hidden" r:id="rId2"/>'
    )
    relations = bytes(parts["xl/_rels/workbook.xml.rels"]).decode()  # type: ignore[arg-type]
    one = relations[relations.index("<Relationship ") : relations.index("</Relationships>")]
    parts["xl/_rels/workbook.xml.rels"] = relations.replace(
        "</Relationships>", one.replace("rId1", "rId2").replace("sheet1", "sheet2") + "</Relationships>"
    )
    parts["xl/worksheets/sheet2.xml"] = sheet_xml([HEADER, patient(8), patient(9)])
    read = await LeitorDeArquivos(SystemClock()).ler(package(parts), "agenda.xlsx")
    assert [row["nome_paciente"] for row in read.linhas] == ["Pessoa Fictícia 00001"]


def test_child_has_at_most_the_promised_memory() -> None:
    assert MEMORY <= 200 * 1024 * 1024


async def test_child_that_reads_a_file_gets_limits_and_no_secret_and_no_name_in_its_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("API_TOKEN", "canary-token")
    monkeypatch.setenv("DATABASE_URL", "postgresql://x:canary-password@db/x")
    async with LeitorDeArquivos(SystemClock()).aberta(xlsx([HEADER, patient(1)]), "Joana Inventada.xlsx") as folha:
        process = Path(f"/proc/{folha._child.pid}")
        given = process.joinpath("environ").read_bytes() + process.joinpath("cmdline").read_bytes()
        limits = process.joinpath("limits").read_text()
        assert [len(each.linhas) async for each in folha.pedacos()] == [1]
    assert b"canary" not in given
    assert b"Joana" not in given
    hard = {line[:25].strip(): line[47:67].strip() for line in limits.splitlines()[1:]}
    assert {
        name: hard[f"Max {name}"] for name in ("address space", "cpu time", "open files", "core file size", "file size")
    } == {
        "address space": str(MEMORY),
        "cpu time": str(CPU_SECONDS),
        "open files": str(MOST_FILES),
        "core file size": "0",
        "file size": "0",
    }


def test_look_at_cells_takes_linear_time() -> None:
    """The regular expressions that look at cells take linear time. An earlier version searched the rest of the sheet
    for the end of each unclosed cell, which took quadratic time.
    """
    began = time.monotonic()
    assert _FAR.search(b'<c r="AAA1" ' * 340_000) is None
    assert _UNCOUNTED.search(b'<c r="AAA1" ' * 340_000) is None
    assert time.monotonic() - began < 5  # the earlier version took 12 s on an idle machine
