"""Julia's business code. Each folder is one context, usually with the modules model (pure rules), repository (SQL),
service (use cases) and jobs (handlers).
"""
