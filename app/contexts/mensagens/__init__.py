"""Messages to doctors: the queue they wait in, and the line they leave by."""
