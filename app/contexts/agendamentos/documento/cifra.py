"""Encrypts an appointment's documents for storage, and decrypts them. Without BATUTA_KEYS the documents are stored as
plain text.
"""

from collections.abc import Mapping
from typing import Any, Final

from batuta.kernel import Encryption, Json
from batuta.sql import EncryptedColumn, Row

TABLE: Final = "appointments"
DOCUMENTOS: Final = ("documento_completo", "carteira_convenio", "numero_convenio", "documento_normalizado", "cpf", "rg")
ENCRYPTED: Final = tuple(
    EncryptedColumn(
        table=TABLE,
        column=name,
        is_json=name == "documento_normalizado",
        digest="fonte" if name == "documento_completo" else None,
    )
    for name in DOCUMENTOS
)


def cifrado(linha: Mapping[str, Json], cifra: Encryption) -> dict[str, Json]:
    """Return an appointment's row in the form in which it is stored, with its documents encrypted."""
    stored = {name: cifra.encrypt(linha[name], f"{TABLE}.{name}") for name in DOCUMENTOS if name in linha}
    return {**linha, **stored}


def decifrado(row: Row, cifra: Encryption) -> dict[str, Any]:
    """Return an appointment's stored row with its documents decrypted. Raises KeyMissing or DamagedValue."""
    read = dict(row)
    return read | {name: cifra.decrypt(read[name], f"{TABLE}.{name}") for name in DOCUMENTOS if name in read}
