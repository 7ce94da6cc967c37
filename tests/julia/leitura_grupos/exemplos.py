"""Short forms of the vacancies that were read, for test tables: "hospital | data | período | horas | valor |
especialidade".
"""

from datetime import datetime
from zoneinfo import ZoneInfo

from app.contexts.leitura_grupos.api import Leitura, VagaLida, Vocabulario, ler

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
# A Monday.
SEGUNDA = datetime(2026, 8, 3, 9, 0, tzinfo=SAO_PAULO)
CANONICOS = {
    "hospitais": [
        {
            "canonico": "Hospital Teste do Norte",
            "cidade": "Belém",
            "uf": "PA",
            "aliases": ["HTN", "Teste Norte", "Geral Teste"],
        },
        {"canonico": "Hospital Geral Modelo", "cidade": "Pelotas", "uf": "RS", "aliases": ["HGM", "Geral Teste"]},
        {"canonico": "UPA Exemplo Leste", "cidade": "Belém", "uf": "PA", "aliases": ["UPA Exemplo", "UPA E. Leste"]},
        {"canonico": "Santa Casa de Amostra", "cidade": "Amostra", "uf": "SP", "aliases": ["Sta Casa Amostra"]},
    ]
}
VOCABULARIO = Vocabulario.de(CANONICOS)


def lida(texto: str, em: datetime = SEGUNDA, regiao: str | None = "Belém/PA") -> Leitura:
    return ler(texto, enviado_em=em, regiao=regiao, vocabulario=VOCABULARIO)


def vagas(texto: str, em: datetime = SEGUNDA, regiao: str | None = "Belém/PA") -> list[VagaLida]:
    return list(lida(texto, em, regiao).vagas)


def curtas(texto: str, em: datetime = SEGUNDA, regiao: str | None = "Belém/PA") -> list[str]:
    """Return a sorted list with one line per vacancy, for example "08-05 noturno 1800"."""
    return sorted(
        f"{each.data.valor:%m-%d} {each.periodo.valor} {_reais(each)}".strip() for each in vagas(texto, em, regiao)
    )


def inteiras(texto: str, em: datetime = SEGUNDA, regiao: str | None = "Belém/PA") -> list[str]:
    """Return the same lines as ``curtas``, with hospital and speciality added."""
    return sorted(
        f"{each.hospital.valor} | {each.especialidade.valor} | {each.data.valor:%m-%d} {each.periodo.valor} {_reais(each)}".strip()
        for each in vagas(texto, em, regiao)
    )


def _reais(each: VagaLida) -> str:
    return "" if each.valor is None else f"{each.valor.valor:f}"
