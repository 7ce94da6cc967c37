"""Classifies a message: offer, closing notice, conversation and other categories."""
