"""The ground: time, identity, errors, facts, waiting, JSON, masking. Imports nothing of ours and nothing of anybody else's."""
