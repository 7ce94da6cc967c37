"""Follow-ups: messages to doctors who do not answer, and the pause after the last follow-up."""
