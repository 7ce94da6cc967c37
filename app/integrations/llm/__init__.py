"""Client of a language model with the common chat-completions API."""
