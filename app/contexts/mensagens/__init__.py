"""Messages to doctors: the send queue and the sending rules."""
