"""A folder of Markdown files as the source of briefing and templates.

BRIEFING_DIR/*.md                     the briefing: the file whose name is last alphabetically, such as 2026-03-09.md
BRIEFING_DIR/templates/<tipo>.md      a template, or
BRIEFING_DIR/templates/<tipo>/*.md    the file whose name is last alphabetically in the type's folder
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from app.contexts.diretrizes.service import Documento, FonteIndisponivel
from batuta.kernel import dataclass

TIPOS: Final = ("discovery", "oferta", "reativacao", "followup", "feedback")
MOST_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MarkdownFolder:
    folder: Path
    origem: str = "pasta"

    async def briefing(self) -> Documento | None:
        return await asyncio.to_thread(self._newest, self.folder)

    async def templates(self) -> Mapping[str, Documento]:
        return await asyncio.to_thread(self._templates)

    def _templates(self) -> dict[str, Documento]:
        root = self.folder / "templates"
        found = {tipo: self._newest(root / tipo) or self._read(root / f"{tipo}.md") for tipo in TIPOS}
        return {tipo: document for tipo, document in found.items() if document is not None}

    def _newest(self, folder: Path) -> Documento | None:
        try:
            names = sorted(each.name for each in folder.glob("*.md") if each.is_file()) if folder.is_dir() else []
        except OSError as error:
            raise FonteIndisponivel(why=type(error).__name__) from None
        return self._read(folder / names[-1]) if names else None

    def _read(self, file: Path) -> Documento | None:
        """Return the file as a document, or None if it does not exist. At most MOST_BYTES are read, and a longer file
        is invalid.
        """
        try:
            with file.open("rb") as opened:
                read = opened.read(MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FonteIndisponivel(why=type(error).__name__) from None
        try:
            return Documento(file.name, read.decode("utf-8-sig"))
        except UnicodeDecodeError:
            return Documento(file.name, None)
