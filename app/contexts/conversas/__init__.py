"""Conversations with doctors: messages in both directions, opt-outs and removals of personal data."""
