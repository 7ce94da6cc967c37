"""Every command is run on a database in which each table contains a person's data. A command that shows personal data
leaves an audit entry.
"""

import asyncio
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from tests.command import Command
from tests.julia.web.test_personal_data import Office, open_office

JULIA = ("--app", "app.main:work")
# Commands that read, with the arguments that show most. {name} is an id of the office.
READING = """
batches list
batches show {/batches}
bulk list fila_mensagens
doctor
executions
health
incidents
jobs
keys list
limits
logs {/tasks}
queue list
queue show fila_mensagens
queue show fila_mensagens --state ready
schedules list
switch list
token list
windows list
agendamentos contar
agendamentos importacoes
agendamentos importacoes {/api/v1/appointments/imports}
agendamentos listar
agendamentos listar --documentos
agendamentos saude
agendamentos ver {/api/v1/appointments}
agendamentos ver {/api/v1/appointments} --documentos
agendamentos exportar exported.csv
campanhas listar
campanhas porque 1 {phone}
campanhas ver 1
chips
conversas duvidas
conversas listar
conversas pendencias
conversas ver {/api/v1/conversas}
diretrizes listar
diretrizes ver briefing
duvidas
followups listar
gatilhos listar
gatilhos simular discovery_autonomo
grupos bloqueados
grupos fechamentos
grupos mensagens
grupos nomes x
grupos revisao
grupos rotulos --saida labels.jsonl
grupos status
grupos vagas
grupos ver {/grupos/revisao}
handoffs listar
handoffs ver {/api/v1/handoffs}
lgpd exportar {phone} --saida person.json
lgpd pedidos
medicos listar
medicos ver {/api/v1/medicos}
qualidade listar
qualidade orientacao
qualidade ver {/api/v1/qualidade}
relatorios listar
relatorios ver 00000000-0000-7000-8000-000000000000
telegram acoes
telegram historico
telegram status
vagas candidatos {/api/v1/vagas}
vagas listar
vagas ver {/api/v1/vagas}
sql "SELECT nome_paciente FROM appointments"
"""
# Commands that change something, start a process, or read a file or text of their caller.
OTHERS = """
api backup migrate restore scheduler up worker arq simulador simulador_telegram pause resume run chip configurar-webhook
decidir optout remover "batches cancel" "batches close" "bulk cancel" "bulk discard" "bulk retry" "bulk stop"
"circuits open" "circuits probe" "circuits reset" "keys rotate" "queue cancel" "queue discard" "queue edit"
"queue rehome" "queue retry" "queue unstick" "schedule compare" "schedule use" "schedules backfill" "schedules create"
"schedules delete" "schedules edit" "schedules pause" "schedules resume" "switch off" "switch on" "token create"
"token revoke" "token rotate" "windows set" "workers drain" "workers restart" "workers stack" "agendamentos avaliar"
"agendamentos importar" "agendamentos reprocessar" "campanhas agendar" "campanhas cancelar" "campanhas criar"
"campanhas pausar" "campanhas retomar" "conversas assumir" "conversas decidir" "conversas devolver" "conversas encerrar"
"conversas ler" "conversas resolver" "conversas responder" "followups pausar" "followups retomar" "grupos aprovar"
"grupos avaliar" "grupos backfill" "grupos bloquear" "grupos carregar" "grupos esquecer" "grupos fechar" "grupos ler"
"grupos liberar" "grupos manter" "grupos rejeitar" "grupos reler" "grupos reprocessar" "handoffs abrir"
"handoffs confirmar" "handoffs recusar" "lgpd apagar" "medicos corrigir" "medicos importar" "qualidade corrigir"
"relatorios reenviar" "telegram apagar" "telegram chaves" "telegram editar" "telegram encaminhar" "telegram enviar"
"telegram ler" "telegram login" "telegram pausar" "telegram retomar" "telegram vincular" "vagas anunciar"
"vagas cancelar" "vagas criar" "vagas interesse" "vagas liberar" "vagas realizada" "vagas reservar"
"""
ENTRIES = (
    "SELECT COUNT(*) FROM audit_log WHERE action IN ('access.read', 'access.unmask', 'access.export', 'lgpd.exportar')"
)


async def fill(url: str) -> Office:
    office = await open_office(url)
    await office.julia.work.close()
    return office


def test_command_that_shows_personal_data_leaves_an_audit_entry(
    julia_url: str, tmp_path: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", julia_url)
    office = asyncio.run(fill(julia_url))
    ids = {**office.ids, "phone": office.who.telefone}
    signs = [sign.decode() for sign in office.signs]
    shown, silent = set(), []
    with sqlite3.connect(f"file:{tmp_path}/julia.db?mode=ro", uri=True) as database:
        for line in READING.strip().splitlines():
            command = re.sub(r"{(.+?)}", lambda found: ids[found[1]], line)
            for form in ([], ["--json"]):
                (before,) = database.execute(ENTRIES).fetchone()
                code, out, err = batuta(*JULIA, *shlex.split(command), *form)
                assert code in (0, 1), (line, err)
                if any(sign in out + err for sign in signs):
                    shown.add(line.partition(" {")[0])
                    silent += [line] if database.execute(ENTRIES).fetchone()[0] == before else []
    assert silent == []
    assert {"conversas ver", "grupos mensagens", "handoffs ver", "agendamentos ver", "telegram acoes"} <= shown
    assert any(line.startswith("sql ") for line in shown)
    for file in ("exported.csv", "labels.jsonl", "person.json"):
        assert (tmp_path / file).stat().st_mode & 0o777 == 0o600


def test_every_command_is_classified(batuta: Command) -> None:
    from scripts.reference import _commands_of

    listed = {name.removeprefix("batuta ") for name, _ in _commands_of("app.main:work")}
    reading = {name for name in listed if re.search(rf"^{name}(?: |$)", READING, re.MULTILINE)}
    others = {a or b for a, b in re.findall(r'"([^"]+)"|(\S+)', OTHERS)}
    assert others | reading == listed
    assert not others & reading
