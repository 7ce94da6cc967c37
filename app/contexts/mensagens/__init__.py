"""Messages to doctors: the send queue and the rules for sending."""
