"""Read one inbound text: determine its class, and whether the person opts out. The result depends only on the text."""
