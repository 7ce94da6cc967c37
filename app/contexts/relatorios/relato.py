"""Convert a report to a JSON object for other programs, and to a text for operators."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.relatorios.periodos import TipoDeRelatorio
from app.contexts.relatorios.service import Relatorio, taxa_de_resposta
from batuta.extension import Texts
from batuta.kernel import Json

# Parts of the figures for which a response rate is computed.
RATED: Final = ("periodo", "dia")


def taxas(metricas: Mapping[str, Any]) -> dict[str, Json]:
    """Return a report's figures, with the response rate added to each section that counts doctors."""
    return {
        part: {**figures, "taxa_resposta": taxa_de_resposta(figures)} if part in RATED else dict(figures)
        for part, figures in metricas.items()
    }


def relatorio_em_palavras(relatorio: Relatorio, zone: ZoneInfo) -> dict[str, Any]:
    periodo = relatorio.periodo
    return {
        "id": relatorio.id,
        "tipo": periodo.tipo.value,
        "inicio": periodo.inicio.astimezone(zone).isoformat(),
        "fim": periodo.fim.astimezone(zone).isoformat(),
        "metricas": taxas(relatorio.metricas),
        "destaques": [dict(each) for each in relatorio.destaques],
        "por": relatorio.por,
        "feito_em": relatorio.feito_em.astimezone(zone).isoformat(),
        "envios": {
            name: {"estado": estado, "erro": relatorio.erros.get(name)} for name, estado in relatorio.envios.items()
        },
    }


def texto_do_relatorio(relatorio: Relatorio, texts: Texts, zone: ZoneInfo) -> str:
    """Write the report as lines of text in the operators' language. The text contains no personal data."""
    return "\n".join(linhas(relatorio, texts, zone))


def linhas(relatorio: Relatorio, texts: Texts, zone: ZoneInfo) -> Iterator[str]:
    yield titulo(relatorio, texts, zone)
    for part, figures in taxas(relatorio.metricas).items():
        assert isinstance(figures, Mapping)
        if part != "periodo":
            yield texts(f"relatorio.parte.{part}")
        for name, value in figures.items():
            if isinstance(value, int | float):
                label = texts(f"estado.classe.{name}") if part == "classes" else texts(f"relatorio.figura.{name}")
                yield f"• {label}: {texts.number(value, 1 if isinstance(value, float) else 0)}"
    if relatorio.destaques:
        yield texts("relatorio.parte.destaques")
    for each in relatorio.destaques:
        known = [each["hospital"], each["especialidade"], each["data"], each["periodo"]]
        yield "• " + ", ".join(str(word) for word in known if word)


def titulo(relatorio: Relatorio, texts: Texts, zone: ZoneInfo) -> str:
    """Return a report's title, with the start and the end of its period in local time. The last day of a weekly report
    is the Sunday.
    """
    starts, ends = relatorio.periodo.inicio.astimezone(zone), relatorio.periodo.fim.astimezone(zone)
    facts: dict[str, object] = {"dia": texts.day(starts.date()), "de": starts.hour, "ate": ends.hour}
    if relatorio.periodo.tipo is TipoDeRelatorio.SEMANAL:
        facts["ate"] = texts.day(relatorio.periodo.ultimo_dia(zone))
    return texts(f"relatorio.titulo.{relatorio.periodo.tipo}", **facts)
