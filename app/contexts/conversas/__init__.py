"""Conversations with doctors: messages in both directions, opt-outs and deletion of personal data."""
