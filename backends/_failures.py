"""What went wrong below HTTP, and what a user can do about it. Must not know any one service."""

from __future__ import annotations

import errno
import os
import ssl
from urllib.request import getproxies, proxy_bypass

import httpx

from backends._safe import safe_text, shown_url
from backends.base import BackendError, ErrorKind

PROXY_LOGIN = "It wants a login: set proxy to http://name:password@host:port."
# What OpenSSL makes of a service that does not answer in TLS.
_NO_TLS = ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH")
_NOT_ITS_AUTHORITY = ("mismatch", "expired", "not yet valid")
_CHECK = "Check url: http or https, host and port."


def failure(error: Exception, url: httpx.URL, *, begun: bool, trusted: str = "", through: str = "") -> BackendError:
    """Tell any exception of httpx as a BackendError. `begun`: the head of the answer had arrived.

    `trusted`: where the certificates are from; `through`: which proxy is asked, a sentence. Either may be empty.
    """
    where, why = shown_url(url), str(error)
    unreachable, protocol = ErrorKind.UNREACHABLE, ErrorKind.PROTOCOL
    lost = ErrorKind.TRUNCATED if begun else unreachable
    match error:
        case httpx.ConnectTimeout():
            message = f"No connection to {where} in time: check url, network and proxy."
            return _told(ErrorKind.TIMEOUT, message, through)
        case httpx.TimeoutException():
            return _told(ErrorKind.TIMEOUT, f"No answer from {where} in time.", through)
        case httpx.ConnectError() if "SSL" in why or "certificate" in why.lower():
            return _told(unreachable, _about_tls(where, why, trusted), through)
        case httpx.ConnectError():
            found = _reason(error) or safe_text(why)
            message = f"{where} cannot be reached{f' ({found})' if found else ''}."
            return _told(unreachable, message, through, "Is the service running, and is url right?")
        case httpx.ProxyError():
            hint = PROXY_LOGIN if "407" in why else ""
            return _told(unreachable, f"The proxy did not connect to {where} ({safe_text(why)}).", through, hint)
        case httpx.UnsupportedProtocol() | httpx.InvalidURL() | httpx.LocalProtocolError():
            # The text of these may quote a header or the URL.
            return BackendError(ErrorKind.SETTINGS, f"The request to {where} cannot be sent: check url and headers.")
        case httpx.NetworkError():
            return _told(lost, f"The connection to {where} was lost before the answer was complete.", through)
        case httpx.RemoteProtocolError() if begun:
            return BackendError(lost, f"{where} closed the connection before the answer was complete.")
        case httpx.RemoteProtocolError() if "location header" in why:
            return BackendError(protocol, f"{where} redirects to what is no address. {_CHECK}")
        case httpx.RemoteProtocolError():
            return _told(protocol, f"{where} closed the connection or does not speak HTTP.", through, _CHECK)
        case httpx.DecodingError():
            return BackendError(protocol, f"The compressed answer of {where} is damaged.")
        case _:
            return _told(protocol, f"The exchange with {where} failed ({type(error).__name__}).", through)


def _told(kind: ErrorKind, *sentences: str) -> BackendError:
    return BackendError(kind, " ".join(filter(None, sentences)))


def _about_tls(where: str, why: str, trusted: str) -> str:
    """A sentence or three about a handshake that failed."""
    if any(sign in why for sign in _NO_TLS):
        return f"{where} does not answer in TLS. {_CHECK}"
    message = f"TLS with {where} failed ({safe_text(why.partition(' (_ssl')[0].rpartition('] ')[2])})."
    if any(sign in why for sign in _NOT_ITS_AUTHORITY):
        return f"{message} Check url; the certificate itself is for whoever runs the service to put right."
    checked = f"Its certificate was checked against {trusted}." if trusted else ""
    hint = "If it is signed by a company's own authority, name that authority's certificate in ca_file."
    return " ".join(filter(None, (message, checked, hint)))


def _reason(error: BaseException | None) -> str:
    """What the system says of a connection that could not be made; empty if it says nothing."""
    while error is not None:
        if isinstance(error, OSError) and error.errno and not isinstance(error, ssl.SSLError):
            # asyncio puts the address in place of the system's words; names are not looked up by the system.
            return os.strerror(error.errno) if error.errno in errno.errorcode else safe_text(error.strerror or "")
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__
        error = inner or error.__context__
    return ""


def proxy_of(configured: str, url: httpx.URL) -> str:
    """Which proxy requests to `url` go through, as a sentence; empty if none."""
    given, source = configured, "setting proxy"
    if not given and not proxy_bypass(url.host):
        found = getproxies()
        given, source = found.get(url.scheme) or found.get("all", ""), "from the environment"
    try:
        proxy = httpx.URL(given if "://" in given else f"http://{given}") if given else None
    except (httpx.InvalidURL, ValueError):
        return ""
    if proxy is None:
        return ""
    where = f"{proxy.scheme}://{proxy.netloc.decode('ascii', 'replace').rpartition('@')[2]}"
    return f"It was asked through the proxy {where} ({source})."
