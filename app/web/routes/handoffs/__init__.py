"""Routes of external hand-offs: for operators, and the page of the confirmation link."""
