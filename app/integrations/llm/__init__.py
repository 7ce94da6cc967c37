"""A language model behind the protocol that most of them speak."""
