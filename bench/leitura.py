"""Measure the rule-based reader: ``python -m bench.leitura`` prints messages per second, and how the time grows when
the length of a text doubles.
"""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from app.contexts.leitura_grupos.api import Vocabulario, ler

NOW = datetime(2026, 8, 3, 12, tzinfo=UTC)
MESSAGES = (
    "Bom dia grupo! Ótimo plantão a todos",
    "Preciso de clínico para o Hospital Teste dia 10/08 SN, R$ 1.500, PJ. Falar com Fulana 91 98100-0001",
    "*VAGAS DISPONÍVEIS*\nUPA Exemplo - Pediatria\n10/08 SD e SN\n12/08 seg das 19h às 07h\n"
    "Semana 1.600 / fds 1.800\nFulana (91) 98100-0001",
    "Alguém sabe se o pagamento de julho do Hospital Teste já caiu?",
    "Vendo estetoscópio seminovo R$ 350, chama no pv",
    "Hospital Amostra - Marabá/PA\nOrtopedia\n"
    + "\n".join(f"{day:02d}/09 {'SD' if day % 2 else 'SN'} - R$ 1.{day}50" for day in range(10, 22)),
)
LONG = "📅 10/08 sáb das 07h às 19h - UPA Exemplo - clínica médica - R$ 1.500,00 PJ. Falar com Fulana 91 98100-0001\n"


def main(arguments: Sequence[str]) -> int:
    rounds = int(arguments[0]) if arguments else 500
    vocabulary = Vocabulario.padrao()
    _read(MESSAGES, 20, vocabulary)
    took = _read(MESSAGES, rounds, vocabulary)
    print(f"{len(MESSAGES) * rounds / took:,.0f} messages/s ({took / len(MESSAGES) / rounds * 1e6:.0f} µs each)")
    for size in (32, 64, 128):
        text = (LONG * (size * 1024 // len(LONG) + 1))[: size * 1024]
        print(f"{size} KiB: {min(_read((text,), 1, vocabulary) for _ in range(3)) * 1000:.0f} ms")
    return 0


def _read(messages: Sequence[str], rounds: int, vocabulary: Vocabulario) -> float:
    began = time.process_time()
    for _ in range(rounds):
        for each in messages:
            ler(each, enviado_em=NOW, regiao="Belém/PA", vocabulario=vocabulary)
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
