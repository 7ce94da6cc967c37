"""Why something is where it is, in words: what the pipeline writes is one short word, for machines and for ``--motivo``."""

from typing import Final

from batuta.texts import Texts

_INCOMPLETE: Final = "match_incompleto:"


def motivo_em_palavras(texts: Texts, motivo: str | None) -> str:
    """What a person wrote as the reason, or a word nobody put into the texts, is told as it is."""
    if not motivo:
        return ""
    if motivo.startswith(_INCOMPLETE):
        lacks = motivo.removeprefix(_INCOMPLETE).split(",")
        return texts(
            "grupos.motivo.match_incompleto",
            falta=", ".join(texts.known(f"grupos.campo.{each}", each) for each in lacks),
        )
    return texts.known(f"grupos.motivo.{motivo}", motivo)
