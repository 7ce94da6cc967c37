"""The security headers that every response contains."""

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HTTPS_HEADERS = {"Strict-Transport-Security": "max-age=31536000"}


def security_headers(*, https: bool) -> dict[str, str]:
    return SECURITY_HEADERS | (HTTPS_HEADERS if https else {})
