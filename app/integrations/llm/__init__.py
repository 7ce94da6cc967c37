"""Client for language models that offer the common chat-completions API."""
