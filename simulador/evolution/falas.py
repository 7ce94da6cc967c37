"""Texts for group messages: conversations, forwarded offers and doubtful offers. All people and places are
fictitious.
"""

from simulador.comportamento import Chance

SETTINGS = ("Hospital Fictício", "UPA Imaginária", "Clínica Inventada")
# Names that only the label "Local" marks as a place, so that a reader cannot be certain.
UNSURE = ("Recanto Imaginário", "Vila Fantasia", "Alto do Faz de Conta")
AREAS = ("clínica médica", "pediatria", "ortopedia", "ginecologia")
CHATTER = ("[SIMULADO] bom dia grupo", "[SIMULADO] alguém sabe o contato?", "[SIMULADO] obrigada!", "👍")
# Every fifth message needs a person's decision. In turn it has an uncertain place, no place, or no day.
DOUBTFUL = 5


def fala(chance: Chance, n: int) -> str:
    """Return the nth message of the simulated groups. The same ``n`` and the same seed always give the same text."""

    def pick(words: tuple[str, ...], what: str) -> str:
        return words[chance.bits(16, what, n) % len(words)]

    day, value = 1 + chance.bits(16, "day", n) % 28, 800 + 50 * (chance.bits(16, "value", n) % 20)
    area = pick(AREAS, "area")
    if n % DOUBTFUL == DOUBTFUL - 1:
        return (
            f"[SIMULADO] Vaga de {area}\nLocal: {pick(UNSURE, 'unsure')}\nDia {day:02d}, 19h às 7h\nR$ {value}",
            f"[SIMULADO] Preciso de plantonista de {area} dia {day:02d}, 19h às 7h, R$ {value}, chama no pv",
            f"[SIMULADO] {pick(SETTINGS, 'setting')} com vagas de {area}, noturno, R$ {value}, PJ. Datas no pv",
        )[n // DOUBTFUL % 3]
    if chance.of("chatter", n) < 0.4:
        return pick(CHATTER, "chatter words")
    if n > 1 and chance.of("forwarded", n) < 0.25:
        return fala(chance, n - 1)  # forwarded from another group
    setting = pick(SETTINGS, "setting")
    if chance.of("list", n) < 0.3:
        days = "\n".join(f"- dia {1 + (day + each) % 28:02d} {pick(('SD', 'SN'), f'turn {each}')}" for each in range(3))
        return f"[SIMULADO] *{setting}* - {area}\n{days}\nR$ {value} por plantão, PJ"
    return f"[SIMULADO] Plantão de {area} no {setting}, dia {day:02d}, 19h às 7h, R$ {value}"
