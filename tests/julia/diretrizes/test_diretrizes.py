"""Directives on both databases: an unchanged or invalid document changes nothing, and every version is kept."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.diretrizes.jobs import DirectiveJobs
from app.contexts.diretrizes.leitura import Invalido, Lido, ler_briefing, ler_template
from app.contexts.diretrizes.service import Diretrizes
from app.integrations.documents.folder import MarkdownFolder
from batuta.queue.outcome import Done, Partial, Skipped
from batuta.receive.endpoints import JobCall
from tests import ROOT
from tests.julia.envio.sending import Office
from tests.julia.tables import rows

BRIEFING = "# Semana\n## Foco\n- Pediatria\n## Tom:\n- 10% a mais na negociação\n"


def service(office: Office) -> Diretrizes:
    return julia_of(office.work).directives.diretrizes


async def run(office: Office, folder: Path, templates: bool = False) -> Any:
    office.clock.step(timedelta(hours=1))
    now = office.clock.now()
    jobs = DirectiveJobs(service(office), MarkdownFolder(folder), str(folder))
    call = JobCall(key="k", params={}, started_at=now, deadline=now + timedelta(minutes=5))
    return await (jobs.sincronizar_templates(call) if templates else jobs.sincronizar_briefing(call))


async def active(office: Office) -> dict[str, Any]:
    return {row["tipo"]: row["conteudo"] for row in await service(office).ativas()}


async def test_briefing_is_applied_once_and_an_unchanged_file_does_nothing(office: Office, tmp_path: Path) -> None:
    (tmp_path / "2026-03-09.md").write_text(BRIEFING, encoding="utf-8")
    first, again = await run(office, tmp_path), await run(office, tmp_path)
    assert (first.items, first.result["changed"]) == (1, True)
    assert (again.items, again.result["changed"]) == (0, False)
    assert await active(office) == {
        "foco_semana": {"itens": ["Pediatria"]},
        "tom_semana": {"itens": ["10% a mais na negociação"]},
        "margem_negociacao": {"percentual": 10},
    }
    assert len(await rows(office.work.database, "SELECT id FROM briefing_sync_log")) == 1


async def test_newer_version_ends_removed_sections_and_keeps_the_old_ones(office: Office, tmp_path: Path) -> None:
    (tmp_path / "2026-03-09.md").write_text(BRIEFING, encoding="utf-8")
    await run(office, tmp_path)
    (tmp_path / "2026-03-16.md").write_text("## Foco\n- Clínica médica\n", encoding="utf-8")
    changed = await run(office, tmp_path)
    assert changed.result["documentos"][0]["diretrizes"] == ["foco_semana", "margem_negociacao", "tom_semana"]
    assert await active(office) == {"foco_semana": {"itens": ["Clínica médica"]}}
    versions = await service(office).versoes("foco_semana")
    assert [(row["versao"], row["encerrada_em"] is None) for row in versions] == [(2, True), (1, False)]


@pytest.mark.parametrize(
    "wrong", [b"", b"## Receitas\n- bolo", b"## Foco\n- a\n## Foco\n- b", b"## Foco\n\n## Tom\n- x",
     b"\xff\xfe", b"## Foco\n" + b"x" * 70_000]
)  # fmt: skip
async def test_an_invalid_file_changes_nothing_and_is_reported(office: Office, tmp_path: Path, wrong: bytes) -> None:
    file = tmp_path / "briefing.md"
    file.write_text(BRIEFING, encoding="utf-8")
    await run(office, tmp_path)
    before = await active(office)
    file.write_bytes(wrong)
    first, again = await run(office, tmp_path), await run(office, tmp_path)
    assert isinstance(first, Partial)
    assert isinstance(again, Partial)  # reported again, recorded once
    assert await active(office) == before
    assert len(await rows(office.work.database, "SELECT id FROM briefing_sync_log WHERE resultado = 'invalido'")) == 1
    (finding,) = (await service(office).ask()).findings
    assert finding.cause == "diretrizes.invalidas"
    file.write_text(BRIEFING, encoding="utf-8")
    assert isinstance(await run(office, tmp_path), Done)
    assert (await service(office).ask()).findings == ()


async def test_without_documents_the_jobs_are_skipped_with_the_next_step(office: Office, tmp_path: Path) -> None:
    for templates in (False, True):
        answer = await run(office, tmp_path / "absent", templates)
        assert isinstance(answer, Skipped)
        assert "examples/briefing" in str(answer.reason)


async def test_example_folder_is_valid_and_an_invalid_template_keeps_the_others(office: Office, tmp_path: Path) -> None:
    example = ROOT / "examples" / "briefing"
    assert isinstance(await run(office, example), Done)
    made = await run(office, example, templates=True)
    assert (type(made), made.items) == (Done, 5)
    assert (await active(office))["template_oferta"]["nao_fazer"][0] == "Não prometer reserva"
    (tmp_path / "templates" / "oferta").mkdir(parents=True)
    (tmp_path / "templates" / "oferta" / "2026-03.md").write_text("nada", encoding="utf-8")
    (tmp_path / "templates" / "feedback.md").write_text("## Objetivo\n- Ouvir\n", encoding="utf-8")
    mixed = await run(office, tmp_path, templates=True)
    assert (type(mixed), mixed.items) == (Partial, 1)
    assert (await active(office))["template_oferta"]["nao_fazer"][0] == "Não prometer reserva"


@pytest.mark.parametrize("title", ["## O que não fazer", "## o que nao fazer:", "### **O QUE NÃO FAZER**"])
def test_prohibitions_are_read_with_and_without_accents(title: str) -> None:
    read = ler_template("oferta", f"{title}\n- Não prometer\n## Margem\n- até 15 %\n")
    assert isinstance(read, Lido)
    assert read.diretrizes == {"template_oferta": {"nao_fazer": ["Não prometer"], "margem": 15}}


def test_priority_vacancies_have_fields_and_an_unreadable_line_is_a_warning() -> None:
    read = ler_briefing(
        "## Vagas prioritárias\n- Hospital Fictício - 20/03 - até R$ 1.800\n- qualquer coisa\n## Outra\n- x\n"
    )
    assert isinstance(read, Lido)
    assert read.diretrizes["vagas_prioritarias"] == {
        "itens": [
            {"hospital": "Hospital Fictício", "data": "20/03", "valor_max": 1800},
            {"texto": "qualquer coisa"},
        ]
    }
    assert [each.split(" ")[0] for each in read.avisos] == ["section", "line"]
    assert isinstance(ler_briefing("sem seções"), Invalido)
