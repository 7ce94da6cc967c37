"""Small spreadsheets written by hand, including ones that no program would write."""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

Cell = str | float | int | None
HEADER = [
    "Nome do Paciente", "Telefone", "Data", "Hora", "Unidade", "Especialidade", "Convênio", "Endereço Completo",
    "Documento Completo", "Observações",
]  # fmt: skip
_TYPES = (
    '<?xml version="1.0" encoding="UTF-8"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml"'
    ' ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml"'
    ' ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>'
)
_RELATIONS = '<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def patient(n: int = 1, **cells: Cell) -> list[Cell]:
    """Return a row for a fictitious person, with the columns of HEADER."""
    row: dict[str, Cell] = {
        "Nome do Paciente": f"Pessoa Fictícia {n:05d}",
        "Telefone": "(11) 90000-0001",
        "Data": "11/03/2026",
        "Hora": "14:30",
        "Unidade": "Unidade Modelo",
        "Especialidade": "Cardiologia",
        "Convênio": "SUS",
        "Endereço Completo": f"Rua dos Testes, {n} ap 3 - Jd. Modelo, Campinas/SP 13010-001",
        "Documento Completo": "CPF: 529.982.247-25 RG 12.345.678-9 SSP/SP",
        "Observações": None,
    }
    return [(row | cells)[name] for name in HEADER]


def xlsx(
    rows: Sequence[Sequence[Cell]],
    *,
    workbook: str = "",
    sheet: str | None = None,
    extra: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """Build a workbook. ``workbook`` is inserted into the workbook's XML, and ``sheet`` is the XML of its only sheet.
    ``extra`` maps paths in the package to the contents of additional files.
    """
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": (
            f'{_RELATIONS}<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
        ),
        "xl/workbook.xml": (
            f'<?xml version="1.0" encoding="UTF-8"?><workbook {_MAIN} xmlns:r="{_OFFICE}">{workbook}'
            '<sheets><sheet name="Agendamentos" sheetId="1" r:id="rId1"/></sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": (
            f'{_RELATIONS}<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>'
        ),
        "xl/worksheets/sheet1.xml": sheet if sheet is not None else sheet_xml(rows),
    }
    return package({**parts, **(extra or {})})


def workbook(sheets: Mapping[str, str]) -> bytes:
    """Build a workbook with several sheets. ``sheets`` maps each sheet's name to its XML."""
    numbered = [*enumerate(sheets, start=1)]
    listed = "".join(f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>' for n, name in numbered)
    related = "".join(
        f'<Relationship Id="rId{n}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n, _ in numbered
    )
    parts: dict[str, str | bytes] = {f"xl/worksheets/sheet{n}.xml": sheets[name] for n, name in numbered}
    parts["xl/workbook.xml"] = (
        f'<?xml version="1.0" encoding="UTF-8"?><workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>'
    )
    parts["xl/_rels/workbook.xml.rels"] = f"{_RELATIONS}{related}</Relationships>"
    return xlsx([], extra=parts)


def moved(rows: Sequence[Sequence[Cell]], *, right: int, down: int = 0) -> list[Sequence[Cell]]:
    """Return a table shifted by a number of columns to the right and a number of rows down."""
    return [*([] for _ in range(down)), *([*[None] * right, *row] for row in rows)]


def xls(rows: Sequence[Sequence[Cell]]) -> bytes:
    """Return one sheet of text cells in the older XLS format: a stream of records inside a file of sectors."""

    def record(kind: int, body: bytes = b"") -> bytes:
        return struct.pack("<HH", kind, len(body)) + body

    def begin(kind: int) -> bytes:
        return record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0x0DBB, 1996, 0, 6))

    def text(row: int, column: int, value: Cell) -> bytes:
        letters = str(value).encode("utf-16-le")
        return record(0x0204, struct.pack("<HHHHB", row, column, 0, len(letters) // 2, 1) + letters)

    head, name, end = begin(0x05) + record(0x42, struct.pack("<H", 1200)), b"Agenda", record(0x0A)
    at = len(head) + 4 + 8 + len(name) + len(end)
    listed = record(0x85, struct.pack("<IBBBB", at, 0, 0, len(name), 0) + name)
    cells = (text(r, c, value) for r, row in enumerate(rows) for c, value in enumerate(row) if value is not None)
    return _sectors(head + listed + end + begin(0x10) + b"".join(cells) + end)


def _sectors(stream: bytes) -> bytes:
    """Return a compound file with one stream of up to 126 sectors."""
    none, last = 0xFFFFFFFF, 0xFFFFFFFE
    stream = stream.ljust(max(4096, -(-len(stream) // 512) * 512), b"\0")
    count = len(stream) // 512

    def entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
        letters = f"{name}\0".encode("utf-16-le")
        tail = struct.pack("<HBBIII", len(letters), kind, 1, none, none, child)
        return letters.ljust(64, b"\0") + tail + bytes(36) + struct.pack("<IQ", start, size)

    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, last, 0, last, 0) + struct.pack("<109I", 0, *[none] * 108)
    chain = [0xFFFFFFFD, last, *range(3, count + 2), last]
    sectors = struct.pack("<128I", *chain, *[none] * (128 - len(chain)))
    folder = entry("Root Entry", 5, 1, last, 0) + entry("Workbook", 2, none, 2, len(stream))
    return header + sectors + folder.ljust(512, b"\0") + stream


def package(parts: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return out.getvalue()


def sheet_xml(rows: Sequence[Sequence[Cell]], before: str = "") -> str:
    lines = (
        f'<row r="{number}">{"".join(_cell(column, number, value) for column, value in enumerate(row))}</row>'
        for number, row in enumerate(rows, start=1)
        if row
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>{before}<worksheet {_MAIN}><sheetData>{"".join(lines)}</sheetData></worksheet>'


def _cell(column: int, row: int, value: Cell) -> str:
    place = f"{chr(65 + column)}{row}"
    if value is None:
        return ""
    if isinstance(value, str):
        if value.startswith("\x00formula:"):
            return f'<c r="{place}"><f>{escape(value[9:])}</f></c>'
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'
