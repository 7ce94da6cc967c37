"""Read one inbound text: its class, and whether the person opts out. The result depends only on the text."""
