"""How a fire is delivered: over HTTP, or as a call in this process. (Not built yet.)"""
