"""HTTP clients for the integrations. They follow no redirects, ignore proxies set in the environment, and share
certificates that are loaded once.
"""

import ssl
from functools import cache

import httpx2

from batuta.reasons import define

NO_ANSWER_WITHIN = define("sem_resposta_em", "no answer within {limit}")
ANSWER_TOO_LONG = define("resposta_longa_demais", "the answer is too long")
UNKNOWN_FORMAT = define("resposta_desconhecida", "the answer has an unknown format")

_FEW = httpx2.Limits(max_connections=100, max_keepalive_connections=20)  # the default of the library


def open_client(timeout: httpx2.Timeout, limits: httpx2.Limits = _FEW) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        follow_redirects=False, trust_env=False, timeout=timeout, limits=limits, verify=_certificates()
    )


@cache
def _certificates() -> ssl.SSLContext:
    """Return the TLS context with the certificate authorities that the machine trusts. Loading the certificates takes
    20 ms, so all clients share the context.
    """
    return httpx2.create_ssl_context(trust_env=False)
