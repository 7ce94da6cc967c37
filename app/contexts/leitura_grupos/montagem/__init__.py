"""Assembly of marks into vagas."""
