"""The address a process listens on."""

import errno
import socket

from batuta.kernel.errors import AddressTaken


def listen(host: str, port: int, setting: str = "PORT") -> socket.socket:
    """The socket, bound before anything else is started, so that a taken port is one sentence and not a half-alive tree."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise AddressTaken(host=host, port=port, setting="HOST", why=error.strerror or str(error)) from None
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(512)
    except OSError as error:
        listening.close()
        setting = "HOST" if error.errno == errno.EADDRNOTAVAIL else setting
        raise AddressTaken(host=host, port=port, setting=setting, why=error.strerror or str(error)) from None
    listening.setblocking(False)
    return listening
