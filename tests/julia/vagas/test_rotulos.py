"""The file of ``batuta grupos rotulos`` is a folder's ``grupos.jsonl``: the reader is measured and trained with it."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from app.contexts.leitura_grupos.leitor import SAO_PAULO
from app.contexts.vagas.importacao import PERIODO_ID
from app.contexts.vagas.revisao import REJEITADA, rotuladas
from batuta.testing import FakeClock
from tests.julia.leitura_grupos import calibrar, novo_autor, placar
from tests.julia.leitura_grupos.calibrar import amostras
from tests.julia.leitura_grupos.treinar import exemplos, sem
from tests.julia.web.painel import OPERATOR, act, open_painel

OFFER = "Hospital Regional de Exemplo, Campinas/SP: preciso de clínico dia 12/03, noturno, 19h às 7h. R$ 1.500"
ADVERTISEMENT = "Hospital de Bonecas de Exemplo: plantão de vendas dia 12/03, a partir de R$ 150"


def reviewed(id: str, texto: str, **fields: Any) -> dict[str, Any]:
    return {
        "mensagem_id": id, "status": "importada", "data": date(2026, 3, 12), "periodo_id": None, "hora_inicio": "19:00",
        "hora_fim": "07:00", "valor": 1500, "valor_tipo": "fixo", "forma_pagamento_raw": None, "contato_nome": None,
        "contato_whatsapp": None, "texto": texto, "timestamp_msg": datetime(2026, 3, 10, 12, tzinfo=UTC),
        "grupo_nome": "Grupo de exemplo", "regiao": "Campinas/SP", "hospital_nome": "Hospital Regional de Exemplo",
        "cidade": "Campinas", "estado": "SP", "especialidade_nome": "Clínica Médica", **fields,
    }  # fmt: skip


def export(labels: list[dict[str, Any]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the labels as the only folder of authors."""
    placar.vocabulario()  # reads the canonical names before the folder of authors is replaced
    found = folder / "autores" / "exportado"
    found.mkdir(parents=True)
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in labels)
    (found / "grupos.jsonl").write_text(text, encoding="utf-8")
    monkeypatch.setattr(placar, "AUTORES", found.parent)
    for each in (placar.mensagens, placar.lidas, exemplos, sem, calibrar.lidas, amostras):
        each.cache_clear()
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    night = next(id for periodo, id in PERIODO_ID.items() if periodo.value == "noturno")
    rows = [reviewed("um", OFFER, periodo_id=night), reviewed("dois", ADVERTISEMENT, status=REJEITADA)]
    yield export(rotuladas(rows, SAO_PAULO), tmp_path, monkeypatch)
    for each in (placar.mensagens, placar.lidas, exemplos, sem, calibrar.lidas, amostras):
        each.cache_clear()


def test_exported_corrections_are_measured_and_train_the_models(folder: Path) -> None:
    assert placar.autores() == ["exportado"]
    found = placar.placar(["exportado"])
    assert (found.mensagens, found.com_categoria, found.categoria) == (2, 1, 1)
    assert (found.oferta, found.vaga, found.campo("valor")) == (1, 1, 1)
    assert len(exemplos("exportado")) == 1
    assert [each.certa for each in amostras("exportado")] == [True]


def test_exported_corrections_are_scored_as_a_new_author(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert novo_autor.main([str(folder), "--erros"]) == 0
    assert "category" not in capsys.readouterr().out


async def test_decisions_on_the_review_page_are_exported_and_measured(
    database_url: str, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_painel(database_url, clock, tmp_path) as painel:
        corrected, rejected = await painel.offers(2)
        async with painel.browser(*OPERATOR) as operator:
            fields = {"hospital": "Vila Inventada", "valor": "1.800", "data": "2026-01-20", "periodo": "diurno"}
            done = await act(operator, "revisao.aprovar", vaga=corrected, **fields)
            assert done.status_code == 303
            done = await act(operator, "revisao.rejeitar", vaga=rejected, motivo="não é plantão")
            assert done.status_code == 303
        labels = rotuladas(await painel.julia.groups.revisao.decididas(), painel.julia.work.zone)
    offer, other = sorted(labels, key=lambda each: not each["eh_oferta"])
    assert [(each["data"], each["periodo"], each["valor"]) for each in offer["vagas"]] == [
        ("2026-01-20", "diurno", 1800)
    ]
    assert (other["vagas"], other["categoria"]) == ([], None)
    export(labels, tmp_path, monkeypatch)
    assert placar.placar(["exportado"]).mensagens == 2
    assert len(exemplos("exportado")) == 1
