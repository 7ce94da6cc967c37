"""Classification of a message: offer, closing, conversation and other categories."""
