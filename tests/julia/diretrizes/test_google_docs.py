"""Briefing and templates in Google Docs: the tests send real requests to the simulated Google Drive, on both
databases.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.gestao.diretrizes import documents
from app.composition.julia import julia_of
from app.contexts.diretrizes.jobs import DirectiveJobs
from app.contexts.diretrizes.service import Fonte
from app.integrations.documents.folder import MarkdownFolder
from app.integrations.documents.google import plain_markdown
from app.integrations.documents.service_account import ServiceAccount, UnusableKey
from app.settings import Settings
from batuta.errors import InvalidSetting, MissingBeside
from batuta.queue.outcome import Done, Failed, Partial, Skipped
from batuta.receive.endpoints import JobCall
from tests.julia.diretrizes.chave import Key, make_key
from tests.julia.envio.sending import Office
from tests.julia.tables import one, rows

DOCUMENT, FOLDER = "application/vnd.google-apps.document", "application/vnd.google-apps.folder"
BRIEFING = "# Semana {#semana}\n\n## **Foco** {#foco}\n\n\\- Pediatria\n\n## Tom\n\n* 10% a mais na negociação\n"


class Drive:
    """The simulated Drive for one test, and Julia's document source that uses it."""

    def __init__(self, office: Office, url: str, key: Key, fonte: Fonte) -> None:
        self._office, self._url, self.key, self.fonte = office, f"{url}/google", key, fonte

    async def put(self, *files: dict[str, Any]) -> None:
        known = {"mimeType": DOCUMENT, "parents": ["pasta"], "version": "1", "modifiedTime": "2026-03-09T10:00:00Z"}
        await self.call("PUT", "/controle/arquivos", {"files": [{**known, **each} for each in files]})

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.request(method, f"{self._url}{path}", json=body)
            assert answer.is_success
            return answer

    async def requests(self) -> list[str]:
        async with httpx2.AsyncClient(trust_env=False) as client:
            received = (await client.get(f"{self._url.removesuffix('/google')}/recebidos")).json()["google"]
        return [each["path"] for each in received]

    async def run(self, templates: bool = False) -> Any:
        self._office.clock.step(timedelta(minutes=1))
        now = self._office.clock.now()
        jobs = DirectiveJobs(julia_of(self._office.work).directives.diretrizes, self.fonte, "Google Docs")
        call = JobCall(key="k", params={}, started_at=now, deadline=now + timedelta(minutes=5))
        return await (jobs.sincronizar_templates(call) if templates else jobs.sincronizar_briefing(call))


@pytest.fixture
async def drive(office: Office, simulador: str) -> Drive:
    key = make_key(f"{simulador}/google/token")
    settings = Settings(
        google_docs_credentials=key.credentials,
        google_docs_briefing_id="pasta",
        google_docs_templates_id="modelos",
        google_api_url=f"{simulador}/google",
    )
    made = Drive(office, simulador, key, documents(office.work, settings))
    await made.call("PUT", "/controle/conta", key.account)
    return made


def folder(id: str, name: str, parent: str = "raiz") -> dict[str, Any]:
    return {"id": id, "name": name, "mimeType": FOLDER, "parents": [parent], "text": ""}


async def active(office: Office) -> dict[str, Any]:
    return {row["tipo"]: row["conteudo"] for row in await julia_of(office.work).directives.diretrizes.ativas()}


async def test_newest_document_of_the_folder_is_the_briefing(office: Office, drive: Drive) -> None:
    await drive.put(
        folder("pasta", "Briefings"),
        {"id": "a", "name": "Briefing 2026-03-02", "modifiedTime": "2026-03-10T10:00:00Z", "text": "## Foco\n- velho"},
        {"id": "b", "name": "Briefing 2026-03-09", "text": BRIEFING},
        {"id": "c", "name": "Briefing 2026-03-16", "parents": ["outra"], "text": "## Foco\n- outra pasta"},
        {"id": "d", "name": "2026-03-20", "mimeType": "application/vnd.google-apps.spreadsheet", "text": ""},
    )
    done = await drive.run()
    assert isinstance(done, Done)
    assert await active(office) == {
        "foco_semana": {"itens": ["Pediatria"]},
        "tom_semana": {"itens": ["10% a mais na negociação"]},
        "margem_negociacao": {"percentual": 10},
    }
    stored = await one(office.work.database, "SELECT origem, doc_title FROM briefing_sync_log")
    assert (stored["origem"], stored["doc_title"]) == ("google_docs", "Briefing 2026-03-09")


async def test_unchanged_version_is_not_exported_again_and_a_changed_one_is(office: Office, drive: Drive) -> None:
    file = {"id": "b", "name": "2026-03-09", "text": BRIEFING}
    await drive.put(folder("pasta", "Briefings"), file)
    await drive.run()
    await drive.run()
    assert (await drive.requests()).count("/drive/v3/files/b/export") == 1
    assert (await drive.requests()).count("/token") == 1
    await drive.put(folder("pasta", "Briefings"), {**file, "version": "2", "text": "## Foco\n- Clínica médica"})
    changed = await drive.run()
    assert changed.result["changed"]
    assert await active(office) == {"foco_semana": {"itens": ["Clínica médica"]}}


@pytest.mark.parametrize(
    "wrong", [{"text": ""}, {"text": "## Receitas\n- bolo"}, {"latin": "## Foco\n- clínica"}, {"text": "## Foco\n" + "x" * 70_000}]
)  # fmt: skip
async def test_an_invalid_document_changes_nothing_and_is_reported(
    office: Office, drive: Drive, wrong: dict[str, Any]
) -> None:
    await drive.put(folder("pasta", "Briefings"), {"id": "b", "name": "2026-03-09", "text": BRIEFING})
    await drive.run()
    before = await active(office)
    await drive.put(folder("pasta", "Briefings"), {"id": "b", "name": "2026-03-09", "version": "2", **wrong})
    assert isinstance(await drive.run(), Partial)
    assert await active(office) == before
    (finding,) = (await julia_of(office.work).directives.diretrizes.ask()).findings
    assert finding.cause == "diretrizes.invalidas"


async def test_templates_are_the_newest_documents_of_the_folders_named_after_types(
    office: Office, drive: Drive
) -> None:
    await drive.put(
        folder("t1", "Discovery", "modelos"),
        folder("t2", "Reativação", "modelos"),
        folder("t3", "Rascunhos", "modelos"),
        folder("t4", "Oferta", "modelos"),
        {"id": "a", "name": "antigo", "parents": ["t1"], "text": "## Objetivo\n- velho"},
        {"id": "b", "name": "novo", "parents": ["t1"], "modifiedTime": "2026-03-10T10:00:00Z",
         "text": "## Objetivo\n- conhecer\n## O que não fazer\n- falar de preço"},
        {"id": "c", "name": "x", "parents": ["t2"], "text": "## Objetivo\n- voltar"},
        {"id": "d", "name": "x", "parents": ["t3"], "text": "## Objetivo\n- nada"},
    )  # fmt: skip
    done = await drive.run(templates=True)
    assert done.items == 2
    assert await active(office) == {
        "template_discovery": {"objetivo": ["conhecer"], "nao_fazer": ["falar de preço"]},
        "template_reativacao": {"objetivo": ["voltar"]},
    }


async def test_a_failure_of_google_fails_the_job_and_changes_nothing(office: Office, drive: Drive) -> None:
    await drive.put(folder("pasta", "Briefings"), {"id": "b", "name": "2026-03-09", "text": BRIEFING})
    await drive.run()
    for status in (403, 404, 429, 500):
        await drive.call("PUT", "/controle/falhas", {"status": status, "times": 1})
        failed = await drive.run()
        assert isinstance(failed, Failed)
        assert f"HTTP {status}" in str(failed.error)
        assert drive.key.credentials[:20] not in str(failed.error)
    assert len(await rows(office.work.database, "SELECT id FROM briefing_sync_log")) == 1


async def test_a_rejected_or_expired_token_is_renewed(office: Office, drive: Drive) -> None:
    await drive.put(folder("pasta", "Briefings"), {"id": "b", "name": "2026-03-09", "text": BRIEFING})
    await drive.run()
    await drive.call("PUT", "/controle/conta", drive.key.account)  # Google forgets the token
    assert isinstance(await drive.run(), Done)
    office.clock.step(timedelta(hours=2))
    assert isinstance(await drive.run(), Done)
    assert (await drive.requests()).count("/token") == 3


async def test_a_wrong_key_is_reported_without_the_key(office: Office, drive: Drive) -> None:
    await drive.call("PUT", "/controle/conta", make_key("http://x", 1).account)
    failed = await drive.run()
    assert isinstance(failed, Failed)
    assert "Google rejected the service account" in str(failed.error)


async def test_an_empty_folder_is_skipped(office: Office, drive: Drive) -> None:
    await drive.put(folder("pasta", "Briefings"))
    assert isinstance(await drive.run(), Skipped)
    assert isinstance(await drive.run(templates=True), Skipped)


async def test_a_fixed_document_is_read_directly(office: Office, drive: Drive) -> None:
    await drive.put({"id": "pasta", "name": "Briefing", "text": BRIEFING})
    assert isinstance(await drive.run(), Done)


def test_the_folder_stays_the_default_and_incomplete_settings_are_refused(tmp_path: Path) -> None:
    assert isinstance(documents(None, Settings(briefing_dir=str(tmp_path))), MarkdownFolder)  # type: ignore[arg-type]
    with pytest.raises(MissingBeside, match="GOOGLE_DOCS_CREDENTIALS"):
        Settings(google_docs_briefing_id="x")
    with pytest.raises(MissingBeside, match="GOOGLE_DOCS_BRIEFING_ID"):
        Settings(google_docs_credentials="{}")
    with pytest.raises(InvalidSetting, match="GOOGLE_DOCS_CREDENTIALS"):
        documents(None, Settings(google_docs_credentials="{}", google_docs_briefing_id="x"))  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["", "x", "[]", '{"client_email": "a", "private_key": "b", "token_uri": "c"}'])
def test_credentials_without_a_key_are_refused(wrong: str) -> None:
    with pytest.raises(UnusableKey):
        ServiceAccount.read(wrong)


def test_a_truncated_key_is_refused() -> None:
    whole = make_key("http://x").credentials
    for cut in (200, 300, 400):
        with pytest.raises(UnusableKey):
            ServiceAccount.read(whole.replace(whole[100:cut], ""))


def test_a_key_does_not_appear_in_a_repr() -> None:
    account = ServiceAccount.read(make_key("http://x").credentials)
    assert str(account.modulus) not in repr(account)


def test_anchors_and_escapes_of_the_export_are_removed() -> None:
    assert plain_markdown("## Foco {#foco}\n\\- a \\+ b\n1\\. c\\\\d") == "## Foco\n- a + b\n1. c\\d"
