"""Write the Grafana dashboards into deploy/grafana, in English and in Portuguese: ``python -m scripts.dashboards``."""

import json
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "deploy" / "grafana"
LANGUAGES = {"en": "batuta.json", "pt-BR": "batuta.pt-BR.json"}
SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT = 24, 8


class Panel(NamedTuple):
    en: str
    pt: str
    unit: str
    queries: dict[str, str]  # legend → expression
    kind: str = "timeseries"
    width: int = 12


QUANTILE = "histogram_quantile({}, sum by (le, {}) (rate({}_bucket[$__rate_interval])))"
SETTLED = 'sum by (queue, outcome) (rate(batuta_queue_items_settled_total{queue=~"$queue"}[$__rate_interval]))'
PANELS = (
    Panel("Late jobs", "Tarefas agendadas atrasadas", "none", {"": "sum(batuta_job_stale)"}, "stat", 6),
    Panel(
        "Dead items", "Itens mortos", "none", {"": 'sum(max by (queue) (batuta_queue_items{state="dead"}))'}, "stat", 6
    ),
    Panel(
        "Open circuits",
        "Disjuntores abertos",
        "none",
        {"": 'sum(max by (circuit) (batuta_circuits{state="open"}))'},
        "stat",
        6,
    ),
    Panel("Processes", "Processos", "none", {"{{role}}": "count by (role) (batuta_build_info)"}, "stat", 6),
    Panel(
        "Waiting items",
        "Itens aguardando",
        "none",
        {
            "{{queue}} {{state}}": 'max by (queue, state) (batuta_queue_items{queue=~"$queue", state=~"due|later|running"})'
        },
    ),
    Panel(
        "Wait of the oldest due item",
        "Espera do item mais antigo",
        "s",
        {"{{queue}}": 'max by (queue) (batuta_queue_oldest_due_age_seconds{queue=~"$queue"})'},
    ),
    Panel(
        "Settled items",
        "Itens concluídos",
        "ops",
        {"{{queue}} {{outcome}}": SETTLED},
    ),
    Panel(
        "From due to start",
        "Espera até o início",
        "s",
        {f"p{p} {{{{queue}}}}": QUANTILE.format(f"0.{p}", "queue", "batuta_queue_wait_seconds") for p in (50, 95)},
    ),
    Panel(
        "Duration of handlers",
        "Duração das funções",
        "s",
        {
            f"p{p} {{{{queue}}}}": QUANTILE.format(f"0.{p}", "queue", "batuta_queue_handler_duration_seconds")
            for p in (50, 95)
        },
    ),
    Panel(
        "Runs by status",
        "Execuções por situação",
        "none",
        {"{{status}}": "sum by (status) (increase(batuta_job_runs_total[$__rate_interval]))"},
    ),
    Panel(
        "Delay of scheduled fires",
        "Atraso dos disparos",
        "s",
        {"p95 {{category}}": QUANTILE.format("0.95", "category", "batuta_job_lateness_seconds")},
    ),
    Panel(
        "Duration of runs",
        "Duração das execuções",
        "s",
        {"p95 {{job}}": QUANTILE.format("0.95", "job", "batuta_job_run_duration_seconds")},
    ),
    Panel(
        "Requests by status",
        "Requisições por código",
        "reqps",
        {"{{status}}": "sum by (status) (rate(batuta_http_request_duration_seconds_count[$__rate_interval]))"},
    ),
    Panel(
        "Database calls",
        "Chamadas ao banco",
        "s",
        {"p95 {{call}}": QUANTILE.format("0.95", "call", "batuta_database_call_duration_seconds")},
    ),
    Panel(
        "Memory",
        "Memória",
        "bytes",
        {"{{instance}}": "process_resident_memory_bytes"},
    ),
    Panel(
        "Restarts and rescued items",
        "Reinícios e itens resgatados",
        "none",
        {
            "{{role}}": "sum by (role) (increase(batuta_process_restarts_total[$__rate_interval]))",
            "{{queue}}": "sum by (queue) (increase(batuta_queue_items_rescued_total[$__rate_interval]))",
        },
    ),
    Panel(
        "Rate limits in use",
        "Limites de taxa em uso",
        "percentunit",
        {"{{limit}}": "max by (limit) (batuta_rate_limit_used / batuta_rate_limit_most)"},
    ),
)


def dashboard(language: str) -> str:
    is_portuguese = language == "pt-BR"
    x = y = 0
    panels = list[dict[str, Any]]()
    for number, panel in enumerate(PANELS, 1):
        if x + panel.width > WIDTH:
            x, y = 0, y + HEIGHT
        panels.append(
            {
                "id": number,
                "type": panel.kind,
                "title": panel.pt if is_portuguese else panel.en,
                "datasource": SOURCE,
                "gridPos": {"x": x, "y": y, "w": panel.width, "h": HEIGHT},
                "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + place), "expr": expression, "legendFormat": legend, "datasource": SOURCE}
                    for place, (legend, expression) in enumerate(panel.queries.items())
                ],
            }
        )
        x += panel.width
    queue = {
        "name": "queue",
        "label": "Fila" if is_portuguese else "Queue",
        "type": "query",
        "datasource": SOURCE,
        "query": "label_values(batuta_queue_items, queue)",
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "refresh": 2,
    }
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    whole = {
        "uid": f"batuta-{language.lower()}",
        "title": "Batuta",
        "tags": ["batuta"],
        "schemaVersion": 39,
        "editable": True,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [source, queue]},
        "panels": panels,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for language, file in LANGUAGES.items():
        (FOLDER / file).write_text(dashboard(language), encoding="utf-8")
