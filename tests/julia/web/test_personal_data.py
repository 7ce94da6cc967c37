"""Every route is requested with every scope, on a database with personal data in every table.

The list of routes comes from the program itself. The tests search the raw bytes of each response, whatever its format.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from fastapi.routing import iter_route_contexts

from batuta.access import Scope, includes, mint
from batuta.kernel.events import RequestAnswered, RequestsRefused
from batuta.kernel.masking import mask
from batuta.stores.sql.database import AsJson
from batuta.web.auth import scope_of
from tests.engine.web.test_live import Follower
from tests.julia.lgpd.pessoas import Pessoa, add_everywhere, add_shift, insert
from tests.julia.tables import rows
from tests.julia.web.test_access import LOCAL, OPEN, OWN_SECRET, SECRETS, SIGNED_LINK, routes
from tests.julia.web.test_api import BEARER, Julia, is_problem, open_julia

FREE = "texto livre da paciente"
CNS = "765863883151671"  # digits that no float of /metrics ends with
EXAM = "beta-HCG"
STREET = "Rua das Acácias Inventadas"
CPF = "52998224725"


# Values of the placeholders in addresses, by the beginning of the route.
NAMES = {
    "/painel/tarefas": "heartbeat",
    "/painel/filas": "fila_mensagens",
    "/schedules": "resumo",
    "/health/{name}": "telegram",
}
# Routes whose address names no record, or a record that only a signed link or a sent message has.
NO_RECORD = {
    "/painel/static/{name}", "/painel/{rest:path}", "/handoffs/confirmar", "/health/{name}", "/api/v1/jobs/{job_id}/status",
    "/api/v1/telegram/mensagens/{id}", "/api/v1/diretrizes/{tipo}", "/api/v1/relatorios/{id}",
}  # fmt: skip


@dataclass
class Office:
    julia: Julia
    who: Pessoa
    tokens: dict[Scope, dict[str, str]]
    ids: dict[str, str]

    @property
    def signs(self) -> tuple[bytes, ...]:
        found = (*self.who.sinais, FREE, CNS, EXAM, STREET, CPF, f"…{self.who.telefone[-4:]}")
        # The search also covers JSON escapes, and spellings without accents that JSON would escape.
        return tuple({each.encode() for each in found} | {json.dumps(each)[1:-1].encode() for each in found})

    def address(self, path: str) -> str:
        """Return the address of an existing record, so that the route shows everything that it can show."""
        for name, id in self.ids.items():
            if path.startswith(name):
                path = path.replace("{id}", id).replace("{id:agendamento}", id)
        for name, word in NAMES.items():
            if path.startswith(name):
                path = path.replace("{name}", word)
        path = path.replace("{endpoint}", "limpar-historico").replace("{name}", "x").replace("{rest:path}", "x")
        return path.replace("{job_id}", self.ids["task"]).replace("{nome}", "discovery").replace("{tipo}", "briefing")

    def shows(self, answer: httpx2.Response) -> list[bytes]:
        return [sign for sign in self.signs if sign in answer.content]


@pytest.fixture
async def office(julia_url: str) -> AsyncIterator[Office]:
    made = await open_office(julia_url)
    yield made
    await made.julia.work.close()


async def open_office(julia_url: str) -> Office:
    """Open Julia on a migrated database with a person's data in every table and one token for each scope."""
    julia = await open_julia(julia_url, APP_ENV="production", BATUTA_REFUSALS_PER_MINUTE="100000", **SECRETS)
    work, new, now = julia.work, julia.work.ids.new, julia.work.clock.now()
    who = await add_everywhere(work, 7)
    shift = await add_shift(work, who, "aberta")
    ids = {
        name: new()
        for name in ("task", "import", "handoff", "avaliacao", "pedido", "agendamento", "fechamento", "acao")
    }
    await insert(
        work, "appointments", id=ids["agendamento"], chave=new(), nome_paciente=f"{who.nome} Teste", telefone=who.telefone,
        cpf=CPF, rg="123456789", observacoes=f"{FREE} CNS {CNS}", exames=EXAM, endereco_completo=f"{STREET}, 10",
        endereco_coleta=STREET, documento_completo=f"CPF {CPF}", carteira_convenio=CNS, numero_convenio=CNS, cep="01001000",
        nome_convenio=f"{FREE} plano", especialidade=EXAM, origem_id=who.telefone, carro=who.nome, nome_unidade="Unidade Centro",
        endereco_normalizado=AsJson({"logradouro": STREET, "cidade": "São Paulo", "uf": "SP", "complemento": FREE}),
        documento_normalizado=AsJson({"cpf": CPF, "cns": CNS, "avisos": []}), fonte=new(), created_at=now, updated_at=now,
        normalization_status="completed",
    )  # fmt: skip
    await insert(
        work, "importacoes", id=ids["import"], arquivo=f"{who.nome} {CPF}.xlsx", sha256="x", status="concluida", created_at=now,
        updated_at=now, errors=AsJson([]), warnings=AsJson([]),
    )  # fmt: skip
    await insert(
        work, "vagas_historico", vaga_id=shift, ordem=2, de="aberta", para="aberta", por="x", motivo=FREE, em=now
    )
    message = (await rows(work.database, "SELECT id FROM fila_mensagens LIMIT 1"))[0]["id"]
    await insert(
        work, "external_handoffs", id=ids["handoff"], vaga_id=shift, cliente_id=who.medico, divulgador_id=who.medico,
        mensagem_id=message, reserved_until=now, created_at=now, updated_at=now,
    )  # fmt: skip
    await insert(
        work, "external_handoffs_historico", handoff_id=ids["handoff"], ordem=1, para="pending", por="x", motivo=FREE, em=now
    )  # fmt: skip
    lists = {name: AsJson([FREE]) for name in ("positivos", "negativos", "sugestoes")}
    await insert(
        work, "avaliacoes_qualidade", id=ids["avaliacao"], conversa_id=who.conversa, avaliador="regras", score_geral=5,
        mensagens=3, created_at=now, nota_corrigida=6, correcao=FREE, corrigida_em=now, corrigida_por="x", **lists,
    )  # fmt: skip
    await insert(
        work, "prompts", id=new(), nome="avaliacao", versao=1, conteudo=FREE, base=AsJson({}), por="x", created_at=now
    )
    await insert(
        work, "lgpd_pedidos", id=ids["pedido"], tipo="exportar", digests=AsJson([]), por="x", motivo=FREE, contagens=AsJson({}),
        restam=AsJson({}), created_at=now, updated_at=now, concluido_em=now,
    )  # fmt: skip
    account = new()
    await insert(work, "telegram_contas", id=account, nome="conta", created_at=now, updated_at=now)
    await insert(
        work,
        "telegram_historico",
        id=new(),
        conta_id=account,
        destino=who.telefone,
        maximo=1,
        available_at=now,
        created_at=now,
    )
    await insert(
        work, "telegram_acoes", id=ids["acao"], conta_id=account, acao="ler", chat=who.telefone, mensagem=1, pedida_por="x",
        available_at=now, created_at=now,
    )  # fmt: skip
    await insert(
        work, "fechamentos_grupo", id=ids["fechamento"], mensagem_id=who.mensagem, grupo_id=who.grupo, status="aguardando_revisao",
        trecho=AsJson([0, 5]), created_at=now,
    )  # fmt: skip
    tokens = {}
    for number, scope in enumerate(Scope):
        token, text = mint(scope.value, [scope], by="ana", now=now, chance=lambda n, number=number: f"{number:02x}" * n)  # type: ignore[misc]
        await work.tokens.keep(token)
        tokens[scope] = {"Authorization": f"Bearer {text}"}
    places = {
        "/api/v1/appointments/imports": ids["import"],
        "/api/v1/appointments": ids["agendamento"],
        "/api/v1/conversas": who.conversa,
        "/api/v1/followups": who.conversa,
        "/api/v1/handoffs": ids["handoff"],
        "/api/v1/vagas": shift,
        "/api/v1/medicos": who.medico,
        "/api/v1/qualidade": ids["avaliacao"],
        "/api/v1/lgpd": ids["pedido"],
        "/grupos/revisao": who.vaga_grupo,
        "/grupos/autores": who.contato,
        "/grupos/fechamentos": ids["fechamento"],
        "/campanhas": "1",
        "/api/v1/telegram/acoes": ids["acao"],
    }
    run, task = new(), str((await rows(work.database, "SELECT id FROM tasks LIMIT 1"))[0]["id"])
    await insert(
        work, "job_executions", id=run, job_name="limpar-historico", categoria="x", trigger="manual", started_at=now,
        status="success", finished_at=now,
    )  # fmt: skip
    await insert(
        work, "campanhas", id=1, nome_template="x", tipo_campanha="discovery", corpo="Oi", created_by="x", created_at=now,
        updated_at=now,
    )  # fmt: skip
    batch = new()
    await insert(work, "batches", id=batch, name="x", created_at=now)
    named = {"appointment_id": who.telefone}
    await work.schedules.create("resumo", task="normalize_appointment", args=named, every=3600, by="ana")
    places |= {
        "/painel/execucoes": run,
        "/painel/filas": str(message),
        "/painel/conversas": who.conversa,
        "/painel/vagas": shift,
        "/painel/agendamentos": ids["import"],
        "/painel/campanhas": "1",
        "/tasks": task,
        "/batches": batch,
        "/painel/lotes": batch,
    }
    return Office(julia, who, tokens, {**places, "task": ids["task"]})


def scopes_of(julia: Julia) -> dict[tuple[str, str], Scope]:
    return {
        (method, str(context.path)): scope_of(context, method)
        for context in iter_route_contexts(julia.api.routes)
        for method in context.methods or ()
    }


async def test_no_scope_except_pii_shows_personal_data_on_any_route(office: Office) -> None:
    needed = scopes_of(office.julia)
    asked = [each for each in routes(office.julia.api) if each not in OPEN | OWN_SECRET | SIGNED_LINK]
    refused = 0
    async with office.julia.client() as client:
        for scope in [each for each in Scope if each is not Scope.PII]:
            for method, path in asked:
                for query in ("", "?lang=en"):
                    if query and method != "GET":
                        continue
                    answer = await client.request(
                        method, office.address(path) + query, headers=office.tokens[scope], follow_redirects=False
                    )
                    allowed = includes(frozenset({scope}), needed[method, path])
                    assert (answer.status_code not in (401, 403)) == allowed, (scope, method, path, answer.status_code)
                    assert answer.status_code < 500, (scope, method, path)
                    assert not office.shows(answer), (scope, method, path, office.shows(answer))
                    refused += not allowed
    assert len(asked) > 100
    assert refused > 200
    entries = await rows(office.julia.work.database, "SELECT action FROM audit_log WHERE action = 'access.read'")
    assert not entries


async def test_no_stream_of_a_page_contains_personal_data_whatever_its_scope(office: Office) -> None:
    """Pages with personal data have no live updates, so a stream's bytes are masked even for a reader with the scope
    pii.
    """
    api, views = office.julia.api, office.julia.api.state.batuta.live
    paths = [office.address(path) for method, path in routes(api) if method == "GET" and path.startswith("/painel")]
    await views.tick()
    sent = 0
    for token in (office.tokens[Scope.READ], office.tokens[Scope.PII]):
        async with office.julia.client() as client:
            live = {path for path in paths if b"data-refresh" in (await client.get(path, headers=token)).content}
        for path in paths:
            follower = Follower(api, path, authorization=token["Authorization"])
            assert await follower.status() == 200 or path not in live, path
            await views.tick()
            raw = await follower.sent() if path in live else b""
            await follower.close()
            raw += follower.rest()
            assert [sign for sign in office.signs if sign in raw] == [], path
            sent += len(raw)
    assert sent > 100_000
    entries = await rows(office.julia.work.database, "SELECT actor FROM audit_log WHERE actor = 'readers'")
    assert not entries


async def test_every_address_of_these_tests_shows_a_record(office: Office) -> None:
    """If a new route had no address in this file, every request to the route would get 404, so the tests would not
    check what the route shows.
    """
    missing = []
    async with office.julia.client() as client:
        for method, path in routes(office.julia.api):
            if method == "GET" and path not in NO_RECORD:
                answer = await client.get(office.address(path), headers=BEARER, follow_redirects=False)
                missing += [path] if answer.status_code == 404 or answer.status_code >= 500 else []
    assert missing == []


async def test_no_queue_shows_personal_data_without_pii(office: Office) -> None:
    work, seen = office.julia.work, 0
    async with office.julia.client() as client:
        for name, queue in work.queues.items():
            items = [str(row["id"]) for row in await rows(work.database, f"SELECT id FROM {queue.table.name} LIMIT 1")]
            for path in ("?estado=dead", "?estado=done", "?estado=ready", *(f"/{id}?mostrar=dados" for id in items)):
                answer = await client.get(f"/painel/filas/{name}{path}", headers=office.tokens[Scope.OPERATE])
                assert answer.status_code == 200, (name, path)
                assert not office.shows(answer), (name, path, office.shows(answer))
                seen += len(items)
    assert seen > 10


async def test_repeating_a_message_needs_the_scope_send(office: Office) -> None:
    for action in ("item.retry", "bulk.retry"):
        for method in ("GET", "POST"):
            form = {"fila": "fila_mensagens", "id": office.ids["/painel/filas"]}
            given = {"params": form} if method == "GET" else {"data": form}
            answer = await office.julia.ask(
                method, f"/painel/acoes/{action}", headers=office.tokens[Scope.OPERATE], **given
            )
            assert is_problem(answer, 403, "forbidden")


@pytest.mark.parametrize("path", ["/api/v1/appointments", "/api/v1/appointments/export"])
async def test_unmasking_is_refused_without_pii(office: Office, path: str) -> None:
    for scope in (Scope.READ, Scope.OPERATE, Scope.SEND):
        answer = await office.julia.ask("GET", f"{path}?documentos=true", headers=office.tokens[scope])
        assert is_problem(answer, 403, "forbidden")


async def test_sending_on_telegram_needs_the_scope_send(office: Office) -> None:
    message = {"quem": "5511900000001", "texto": "Bom dia"}
    edit = {"acao": "editar", "chat": "pessoa:7", "mensagem": 1, "texto": "Boa tarde"}
    forward = {"acao": "encaminhar", "chat": "pessoa:7", "mensagem": 1, "para": "5511900000001"}
    given: dict[str, dict[str, Any]] = {
        "/mensagens": {"json": message},
        "/arquivos": {"data": message, "files": {"arquivo": ("a.txt", b"texto", "text/plain")}},
        "/contas/x/acoes": {"json": edit},
        "/contas/y/acoes": {"json": forward},
    }
    for path, options in given.items():
        answer = await office.julia.ask(
            "POST", f"/api/v1/telegram{path}", headers=office.tokens[Scope.OPERATE], **options
        )
        assert is_problem(answer, 403, "forbidden"), path
    read = {"acao": "ler", "chat": "pessoa:7", "mensagem": 1}
    answer = await office.julia.ask(
        "POST", "/api/v1/telegram/contas/x/acoes", headers=office.tokens[Scope.OPERATE], json=read
    )
    assert answer.status_code == 404  # marking a message as read needs operate only; the account does not exist


async def test_answers_to_writers_are_masked_too(office: Office) -> None:
    new = {"nome_paciente": f"{office.who.nome} Nova", "observacoes": FREE, "telefone": office.who.telefone}
    made = await office.julia.ask("POST", "/api/v1/appointments", json=new, headers=office.tokens[Scope.OPERATE])
    assert (made.status_code, office.shows(made)) == (201, [])
    one = f"/api/v1/appointments/{office.ids['/api/v1/appointments']}"
    changed = await office.julia.ask("PATCH", one, json={"exames": EXAM}, headers=office.tokens[Scope.OPERATE])
    assert (changed.status_code, office.shows(changed)) == (200, [])
    # A client must not be able to store the mask that it received.
    back = await office.julia.ask("PATCH", one, json={"nome_paciente": "***"}, headers=office.tokens[Scope.OPERATE])
    assert is_problem(back, 422, "appointment_refused")
    seen = await office.julia.ask("GET", one, headers=office.tokens[Scope.PII])
    assert seen.json()["nome_paciente"] == f"{office.who.nome} Teste"


async def test_every_answer_with_personal_data_leaves_an_audit_entry(office: Office) -> None:
    work = office.julia.work
    more = {"/grupos/mensagens": "?texto=true", "/grupos/vagas": "?contato=true", "/grupos/nomes": "?nome=x"}
    shown = set()
    async with office.julia.client() as client:
        for method, path in routes(office.julia.api):
            if method != "GET" or (method, path) in OPEN | SIGNED_LINK:
                continue
            before = len(await rows(work.database, "SELECT id FROM audit_log"))
            answer = await client.get(office.address(path) + more.get(path, ""), headers=office.tokens[Scope.PII])
            after = await rows(work.database, "SELECT * FROM audit_log ORDER BY at, id")
            if office.shows(answer):
                shown.add(path)
                assert len(after) == before + 1, path
                (entry,) = [each for each in after if each["actor"] == "token pii"][-1:]
                assert entry["action"] in ("access.read", "access.unmask", "access.export"), path
                assert entry["after"]["count"] >= 1, path
                assert entry["after"]["client"] == "127.0.0.1"
    expected = {
        "/api/v1/appointments", "/api/v1/appointments/{id:agendamento}", "/api/v1/appointments/export", "/api/v1/conversas/{id}",
        "/api/v1/pendencias", "/api/v1/handoffs", "/api/v1/handoffs/{id}", "/api/v1/vagas/{id}", "/api/v1/qualidade",
        "/api/v1/qualidade/{id}", "/api/v1/lgpd/pedidos", "/api/v1/lgpd/pedidos/{id}", "/api/v1/telegram/historicos",
        "/api/v1/telegram/acoes", "/api/v1/telegram/acoes/{id}",
        "/grupos/mensagens",
    }  # fmt: skip
    assert expected <= shown


async def test_export_and_import_are_recorded_with_their_counts(office: Office) -> None:
    await office.julia.ask("GET", "/api/v1/appointments/export?documentos=true", headers=office.tokens[Scope.PII])
    file = {"file": ("agenda.csv", b"Nome;Data;Endereco;Documento\r\nPessoa;11/03/2026;Rua Um 1;-\r\n", "text/csv")}
    done = await office.julia.ask(
        "POST", "/api/v1/appointments/import", files=file, headers=office.tokens[Scope.OPERATE]
    )
    assert done.status_code == 200
    found = await entries(office.julia, "access.export", "access.import")
    assert [(each["actor"], each["subject"], each["after"]["count"]) for each in found] == [
        ("token pii", "export_appointments", 2),
        ("token operate", "import_appointments", 1),
    ]
    assert found[0]["after"]["view"] == "inteira"


async def entries(julia: Julia, *actions: str) -> list[dict[str, Any]]:
    found = await rows(julia.work.database, "SELECT * FROM audit_log ORDER BY at, id")
    return [dict(each) for each in found if each["action"] in actions]


async def test_sign_in_and_sign_out_are_recorded_with_the_caller(office: Office) -> None:
    text = office.tokens[Scope.READ]["Authorization"].removeprefix("Bearer ")
    async with office.julia.client() as client:
        await client.post("/painel/entrar", data={"token": text}, headers={"Origin": f"http://{LOCAL}"})
    (entry,) = await entries(office.julia, "session.begin")
    assert (entry["actor"], entry["after"]) == ("token read", {"client": "127.0.0.1"})


async def test_refusals_become_one_entry_per_client_and_minute(office: Office) -> None:
    julia = office.julia
    async with julia.client("192.0.2.7") as one, julia.client("192.0.2.8") as other:
        for _ in range(5):
            await one.get("/jobs", headers={"Authorization": "Bearer wrong"})
        await one.post("/jobs/conta", headers=office.tokens[Scope.READ])
        await other.get("/jobs")
    clients = julia.api.state.batuta.clients
    await clients.drain(None)
    found = {each["actor"]: each["after"]["counts"] for each in await entries(julia, "access.refused")}
    assert found == {"192.0.2.7": {"401": 5, "403": 1}, "192.0.2.8": {"401": 1}}
    assert {(each.client, each.count) for each in julia.events.of(RequestsRefused)} == {
        ("192.0.2.7", 6),
        ("192.0.2.8", 1),
    }


async def test_request_log_names_the_caller(office: Office) -> None:
    await office.julia.ask("GET", "/jobs", headers=office.tokens[Scope.READ])
    await office.julia.ask("POST", "/jobs/conta", headers=office.tokens[Scope.READ])
    await office.julia.ask("GET", "/jobs", headers=BEARER)
    await office.julia.ask("GET", "/jobs")
    answered = office.julia.events.of(RequestAnswered)
    assert all(mask(each.caller or "") == (each.caller or "") for each in answered)  # the log shows the caller unmasked
    assert [(each.status, each.caller) for each in answered] == [
        (200, "token read"),
        (403, "token read"),
        (200, "API_TOKEN"),
        (401, None),
    ]


async def test_metrics_have_a_scope_of_their_own(office: Office) -> None:
    ask = office.julia.ask
    assert (await ask("GET", "/metrics", headers=office.tokens[Scope.METRICS])).status_code == 200
    assert is_problem(await ask("GET", "/metrics", headers=office.tokens[Scope.READ]), 403, "forbidden")
    assert is_problem(await ask("GET", "/jobs", headers=office.tokens[Scope.METRICS]), 403, "forbidden")
