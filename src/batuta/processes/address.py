"""Creates a role's listening socket. This module imports no web framework, because only the api role needs one."""

import errno
import socket

from batuta.kernel.errors import AddressTaken
from batuta.kernel.reasons import Reason


def listen(host: str, port: int, setting: str = "PORT") -> socket.socket:
    """Bind and return the listening socket. The parent binds it before starting a child, so that a port in use causes a
    single error.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise AddressTaken(host=host, port=port, setting="HOST", why=_why(error)) from None
    # asyncio sets TCP_NODELAY only on sockets that were created with an explicit protocol.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(512)
    except OSError as error:
        listening.close()
        setting = "HOST" if error.errno == errno.EADDRNOTAVAIL else setting
        raise AddressTaken(host=host, port=port, setting=setting, why=_why(error)) from None
    listening.setblocking(False)
    return listening


def _why(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return Reason("address_in_use", "another program listens there")
        case errno.EACCES:
            return Reason("address_denied", "this user may not listen there")
        case errno.EADDRNOTAVAIL:
            return Reason("address_elsewhere", "this machine does not have that address")
        case _:
            return Reason("address_error", "{error}", error=error.strerror or str(error))
