"""How a fire is delivered: to a function in this process, or to an address."""
