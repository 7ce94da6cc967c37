"""A language model, asked one structured question at a time: what it may cost, how often, and what it said."""
