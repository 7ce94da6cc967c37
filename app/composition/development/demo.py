"""Fictitious phone numbers, addresses and documents for the demonstration, and the check that a database contains no
real data before the demonstration uses it.
"""

from datetime import date, timedelta

from batuta.kernel import dataclass
from batuta.sql import Database, Query, load_queries

SENDER, LISTENER = "julia-sim", "escuta-sim"
# Additional chips for `make run`. Each chip waits between two messages, so a single chip would send only one message
# per minute.
MORE_SENDERS = tuple(f"julia-sim-{n}" for n in range(2, 9))
# Phone numbers from 55 11 90000-1000 on, which are not assigned.
FIRST_NUMBER = 5511900001000
CIDADES = (("São Paulo", "SP"), ("Santo André", "SP"), ("Campinas", "SP"), ("Rio de Janeiro", "RJ"))

# Addresses with documents, as people type them. The CPFs have valid check digits and belong to no person.
ENDERECOS = (
    "R. das Demonstrações, {n} ap 4 - Jd. Modelo, São Paulo/SP 01310-200",
    "AV EXEMPLO {n} CASA 2 CENTRO CAMPINAS SP CEP 13010-001",
    "Endereço: Rua Fictícia, {n}, fundos. Bairro: Vl. Teste. Cidade: S. Bernardo do Campo. UF: SP. CEP: 09600-000",
    "Tv. Imaginária, s/nº - Tijuca - Rio de Janeiro - RJ",
    "não informado",
)
DOCUMENTOS = ("CPF: 529.982.247-25 RG 12.345.678-9 SSP/SP", "111.444.777-35", "CPF da mãe: 529.982.247-25", "pendente")


def planilha_de_demonstracao(hoje: date, linhas: int = 40) -> bytes:
    """Return a laboratory's spreadsheet as CSV, with appointments for today and the next two weeks."""
    rows = [["Nome do Paciente", "Telefone", "Data", "Hora", "Unidade", "Endereço Completo", "Documento Completo"]]
    for n in range(1, linhas + 1):
        when = f"{hoje + timedelta(days=n % 15):%d/%m/%Y}"
        where, proof = ENDERECOS[n % len(ENDERECOS)].format(n=n), DOCUMENTOS[n % len(DOCUMENTOS)]
        phone, hour = f"(11) 90000-{n:04d}", f"{7 + n % 10:02d}:30"
        rows.append([f"Paciente Fictício {n:03d}", phone, when, hour, "Unidade Demonstração", where, proof])
    return "\n".join(";".join(row) for row in rows).encode()


@dataclass(frozen=True, slots=True)
class DemoQueries:
    owned: Query


async def is_free(database: Database) -> bool:
    """Return whether the demonstration may use the database: the database has no doctors and no campaigns, or only
    those of a demonstration.
    """
    queries = load_queries(DemoQueries, "demo.sql", database.dialect)
    return await database.one(queries.owned, first=str(FIRST_NUMBER)) is None
