"""Check a file before it is opened: its type, its unpacked size, and content that no spreadsheet needs.

Unpacking stops at fixed limits, whatever sizes the file declares.
"""

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import Final

from app.contexts.agendamentos.planilha.aba import HEADER_WITHIN, cabecalho_de
from app.contexts.agendamentos.planilha.linhas import LONGEST_NAME, Achado, MotivoDaLinha, Recusa
from batuta.kernel import dataclass

MOST_BYTES: Final = 10 * 1024 * 1024
MOST_UNPACKED: Final = 64 * 1024 * 1024
MOST_RATIO: Final = 250  # maximum ratio of unpacked to packed size; the ratio of a full sheet is about ten
SMALL: Final = 1024 * 1024  # the ratio is not checked below this size
MOST_ENTRIES: Final = 1000
MOST_ROWS: Final = 50_000
MOST_COLUMNS: Final = 200
_CHUNK: Final = 1024 * 1024
_OVERLAP: Final = 4096
_BETWEEN: Final = ";,\t|"
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
_DTD = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
# Matches a filled cell close to the last allowed row or column, or beyond (GR50000). Such cells are rare in a valid
# sheet.
_FAR = re.compile(
    rb'<c r="(?=[A-Z]{3}|[G-Z][A-Z]|[A-Z]+0*(?:[5-9][0-9]{4}|[1-9][0-9]{5}))'
    rb'([A-Z]{1,3})([0-9]{1,7})"(?:[^<>]*[^/<>])?>\s*<(?:v|is|f)(?=[ >/])'
)
_UNCOUNTED = re.compile(
    rb'<c r="[A-Z]{1,3}([0-9]{1,7})"(?:[^<>]*[^/<>])?>\s*'
    rb"<f(?: [^<>]*)?(?:/>|>[^<]*</f>)\s*+(?:(?:<v\s*+/>|<v>\s*+</v>)\s*+)?</c>"
)
_WORKBOOK: Final = "xl/workbook.xml"
_RELATIONS: Final = "xl/_rels/workbook.xml.rels"
_SHEET = re.compile(rb"<sheet\s[^<>]*>")
_RELATION = re.compile(rb"<Relationship\s[^<>]*>")
_ATTRIBUTE = re.compile(rb'(?<![A-Za-z:])([A-Za-z:]++)="([^"]*)"')
_DATE1904 = re.compile(rb'date1904="(?:1|true)"')
_SIGNATURES: Final = (
    (b"%PDF", "PDF"),
    (b"\x89PNG", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x1f\x8b", "gzip"),
    (b"Rar!", "RAR"),
    (b"7z\xbc\xaf", "7z"),
    (b"<?xml", "XML"),
    (b"<html", "HTML"),
    (b"<!DOCTYPE", "HTML"),
    (b"{\\rtf", "RTF"),
    (b"MZ", "EXE"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examinado:
    """The result of checking a file. ``formulas`` maps each part of the XLSX package to the rows in which a formula has
    no stored value; formulas are never computed.
    """

    since_1904: bool = False
    formulas: Mapping[str, Sequence[int]] = field(default_factory=dict)
    partes: Mapping[str, str] = field(default_factory=dict)  # maps each sheet name to the part of the package
    is_csv: bool = False

    def formulas_de(self, aba: str) -> Sequence[int]:
        return self.formulas.get(self.partes.get(aba, ""), ())


# Extensions that programs also give to CSV files.
SHEETS: Final = (".xlsx", ".xlsm", ".xls", ".ods", ".tsv")


def examinar(content: bytes, name: str) -> Examinado:
    """Check an uploaded file before it is opened. If the file must be refused, raise ``Recusa`` with the reason."""
    if not content.strip(b"\x00 \t\r\n"):
        raise Recusa(MotivoDaLinha.VAZIA)
    if len(content) > MOST_BYTES:
        raise Recusa(MotivoDaLinha.GRANDE, oque=f"{len(content) // 1024} KiB", limite=f"{MOST_BYTES // 1024} KiB")
    if content.startswith(_OLE):
        if _ENCRYPTED in content:
            raise Recusa(MotivoDaLinha.PROTEGIDA)
        return Examinado()
    if content.startswith(b"PK\x03\x04"):
        return _package(content)
    if name.lower().endswith((".csv", ".txt")) and _is_text(content):
        return Examinado(is_csv=True)
    raise Recusa(MotivoDaLinha.NAO_E_PLANILHA, oque=_what(content, name))


def nome_mostravel(name: str) -> str:
    """Return the printable characters of an uploaded file's name, without its folders. The sender chooses the name, so
    it cannot be trusted.
    """
    last = re.split(r"[/\\]", name)[-1]
    return "".join(each for each in last if each.isprintable()).strip()[-LONGEST_NAME:]


def csv_lido(content: bytes) -> tuple[int, Callable[[], Iterator[list[str]]]]:
    """Decode a CSV and return its height and its rows. The encoding may be UTF-8 or CP1252, and the separator a comma,
    a semicolon, a tab or a vertical bar.

    All rows are parsed once before the function returns, so that no later iteration fails.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    csv.field_size_limit(_CHUNK)
    sign = _sign(text)

    def rows() -> Iterator[list[str]]:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign):
            yield row[:MOST_COLUMNS]

    try:
        height = sum(1 for _ in rows())
    except csv.Error:
        raise Recusa(MotivoDaLinha.ILEGIVEL) from None
    if height > MOST_ROWS:
        raise Recusa(MotivoDaLinha.GRANDE, oque=Achado.LINHAS, quanto=height, limite=MOST_ROWS)
    return height, rows


def _sign(text: str) -> str:
    """Return the column separator of a CSV file: the character with which the largest number of column names is
    recognised.
    """
    top, first = text[:_CHUNK], text.partition("\n")[0]
    return max(_BETWEEN, key=lambda sign: (_names(top, sign), first.count(sign)))


def _names(text: str, sign: str) -> int:
    try:
        header = cabecalho_de([*islice(csv.reader(io.StringIO(text, newline=""), delimiter=sign), HEADER_WITHIN * 3)])
    except csv.Error:
        return 0
    return 0 if header is None else len(header.colunas)


def _package(content: bytes) -> Examinado:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            return _entries(package, len(content))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError):
        raise Recusa(MotivoDaLinha.ILEGIVEL) from None


def _entries(package: zipfile.ZipFile, packed: int) -> Examinado:
    entries = package.infolist()
    names = {entry.filename for entry in entries}
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > MOST_ENTRIES:
        raise Recusa(MotivoDaLinha.GRANDE, oque=Achado.PARTES, quanto=len(entries), limite=MOST_ENTRIES)
    if unpacked > MOST_UNPACKED:
        raise Recusa(
            MotivoDaLinha.GRANDE, oque=f"{unpacked // 1024 // 1024} MiB", limite=f"{MOST_UNPACKED // 1024 // 1024} MiB"
        )
    if unpacked > SMALL and unpacked > packed * MOST_RATIO:
        raise Recusa(MotivoDaLinha.PERIGOSA, oque=Achado.COMPRIMIDO)
    if any(entry.flag_bits & 1 for entry in entries):
        raise Recusa(MotivoDaLinha.PROTEGIDA)
    if not any(name.startswith("xl/") for name in names):
        raise Recusa(MotivoDaLinha.NAO_E_PLANILHA, oque="ZIP")
    if any(name.lower().endswith("vbaproject.bin") for name in names):
        raise Recusa(MotivoDaLinha.MACROS)
    since_1904 = False
    formulas: dict[str, set[int]] = {}
    parts: dict[str, bytes] = {}
    for entry in entries:
        if entry.filename.lower().endswith((".xml", ".rels")):
            for chunk in _chunks(package, entry):
                _refuse_dtd(chunk)
                since_1904 = since_1904 or (entry.filename == _WORKBOOK and bool(_DATE1904.search(chunk)))
                if entry.filename.startswith("xl/worksheets/"):
                    _measure(chunk)
                    formulas.setdefault(entry.filename, set()).update(_find_uncounted(chunk))
                elif entry.filename in (_WORKBOOK, _RELATIONS):
                    parts[entry.filename] = parts.get(entry.filename, b"")[:_CHUNK] + chunk
    return Examinado(
        since_1904=since_1904,
        formulas={part: sorted(found)[:100] for part, found in formulas.items()},
        partes=_sheets(parts.get(_WORKBOOK, b""), parts.get(_RELATIONS, b"")),
    )


def _sheets(workbook: bytes, relations: bytes) -> dict[str, str]:
    """Map the name of each sheet to its file in the XLSX archive. Only XML in the form that spreadsheet programs
    usually write is understood.
    """
    targets = {
        each["Id"]: each["Target"]
        for each in map(_attributes, _RELATION.findall(relations))
        if {"Id", "Target"} <= each.keys()
    }
    named = [each for each in map(_attributes, _SHEET.findall(workbook)) if {"name", "r:id"} <= each.keys()]
    return {each["name"]: f"xl/{targets.get(each['r:id'], '').removeprefix('/xl/')}" for each in named}


def _attributes(tag: bytes) -> dict[str, str]:
    from html import unescape  # its table of names takes 0.3 MB, and few processes read spreadsheets

    return {name.decode(): unescape(value.decode(errors="replace")) for name, value in _ATTRIBUTE.findall(tag)}


def _chunks(package: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the unpacked content of one file in the XLSX archive in chunks. Each chunk repeats the end of the previous
    chunk, so that a pattern that spans two chunks is found.

    A file that unpacks to more than its declared size is refused.
    """
    read, before = 0, b""
    with package.open(entry) as opened:
        for part in iter(lambda: opened.read(_CHUNK), b""):
            read += len(part)
            if read > entry.file_size or read > MOST_UNPACKED:
                raise Recusa(MotivoDaLinha.PERIGOSA, oque=Achado.TAMANHO_FALSO)
            yield before + part
            before = part[-_OVERLAP:]


def _refuse_dtd(chunk: bytes) -> None:
    if chunk.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00")) or b"\x00<\x00!" in chunk:
        raise Recusa(MotivoDaLinha.PERIGOSA, oque=Achado.DTD)
    if b"<!" in chunk and _DTD.search(chunk):
        raise Recusa(MotivoDaLinha.PERIGOSA, oque=Achado.DTD)


def _measure(chunk: bytes) -> None:
    """Refuse a sheet with filled cells beyond the limits. A program that reads such a sheet would allocate memory for
    all cells up to the last filled one.
    """
    for found in _FAR.finditer(chunk):
        row = int(found[2])
        if row > MOST_ROWS:
            raise Recusa(MotivoDaLinha.GRANDE, oque=Achado.LINHA, quanto=row, limite=MOST_ROWS)
        if _column(found[1]) > MOST_COLUMNS:
            raise Recusa(MotivoDaLinha.GRANDE, oque=Achado.COLUNA, quanto=found[1].decode(), limite=MOST_COLUMNS)


def _find_uncounted(chunk: bytes) -> set[int]:
    return {int(found[1]) for found in _UNCOUNTED.finditer(chunk)} if b"<f" in chunk else set()


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def _is_text(content: bytes) -> bool:
    return b"\x00" not in content[:4096]


def _what(content: bytes, name: str) -> str:
    for signature, kind in _SIGNATURES:
        if content[:64].lstrip().lower().startswith(signature.lower()):
            return kind
    if not _is_text(content):
        return Achado.OUTRA_COISA
    return Achado.CSV if name.lower().endswith(SHEETS) else Achado.TEXTO
