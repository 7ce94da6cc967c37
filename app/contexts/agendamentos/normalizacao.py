"""Convert an appointment's address and documents to their stored form. The result depends only on the text."""

from dataclasses import replace
from typing import Final

from app.contexts.agendamentos.documento.documento import Documento, documento_de
from app.contexts.agendamentos.endereco.endereco import CEP_DE_OUTRA_UF, Endereco, endereco_de
from app.contexts.agendamentos.endereco.geografia import cep_concorda
from batuta.kernel import Json

CEP_DIFERENTE: Final = "cep_da_coluna_difere"
REGRA: Final = "regra"
LLM: Final = "modelo"


def endereco_lido(texto: str, cep: str | None) -> Endereco:
    """Read an address. ``cep`` comes from a separate column and takes precedence. If the text contains a different CEP,
    a warning is added.
    """
    lido = endereco_de(texto)
    if cep is None or cep == lido.cep:
        return lido
    avisos = [each for each in lido.avisos if each != CEP_DE_OUTRA_UF]
    avisos += [CEP_DIFERENTE] if lido.cep else []
    avisos += [CEP_DE_OUTRA_UF] if lido.uf and not cep_concorda(cep, lido.uf) else []
    return replace(lido, cep=cep, avisos=tuple(avisos))


def endereco_em_json(lido: Endereco, *, fonte: str = REGRA) -> dict[str, Json]:
    return {
        "logradouro": lido.logradouro,
        "numero": lido.numero,
        "complemento": lido.complemento,
        "bairro": lido.bairro,
        "cidade": lido.cidade,
        "uf": lido.uf,
        "cep": lido.cep,
        "referencia": lido.referencia,
        "avisos": list(lido.avisos),
        "fonte": fonte,
    }


def documento_em_json(lido: Documento, *, fonte: str = REGRA) -> dict[str, Json]:
    return {
        "cpf": lido.cpf,
        "rg": lido.rg,
        "orgao_emissor": lido.orgao_emissor,
        "uf_emissor": lido.uf_emissor,
        "cns": lido.cns,
        "avisos": list(lido.avisos),
        "fonte": fonte,
    }


def lido_pelas_regras(endereco: str | None, documento: str | None, cep: str | None) -> tuple[Endereco, Documento]:
    return endereco_lido(endereco or "", cep), documento_de(documento or "")
