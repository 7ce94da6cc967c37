"""Julia over HTTP. Thin: a route asks a context's service and tells what it said."""
