"""Julia's business code, one folder per context: model (pure rules), repository (SQL), service (use cases), jobs
(handlers).
"""
