"""Routes for external hand-offs: those for operators, and the page behind the confirmation link."""
