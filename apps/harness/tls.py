"""nginx in front of the server under test: it ends TLS and says so in X-Forwarded-*.

It listens on two free ports that stand for 80 and 443: clients name the host
without a port, as they would there, and follow redirects by their scheme.
"""

import base64
import hashlib
import os
import ssl
import subprocess
import urllib.parse

from .client import Client, path_of
from .subject import START_SECONDS, fill
from .workdir import listens, wait_for

# Where nginx's requests come from: the kernel chooses it for all of 127/8.
PROXY_ADDRESS = "127.0.0.1"
MAX_REDIRECTS = 5


class Proxy:
    def __init__(self, address, ports, context):
        self.address = address
        self.ports = ports  # by scheme
        self.context = context

    def client(self, scheme, **more):
        """A visitor of the site by this scheme."""
        fields = {"Host": self.address, **more.pop("fields", {})}
        tls = self.context if scheme == "https" else None
        return Client(self.address, self.ports[scheme], fields=fields, tls=tls, **more)

    def follow(self, client, url):
        """Asks as a browser does, from one scheme to the other; all responses."""
        responses = []
        clients = {"https" if client.tls else "http": client}
        scheme = next(iter(clients))
        while len(responses) <= MAX_REDIRECTS:
            if scheme not in clients:
                clients[scheme] = self.client(scheme, cookies=client.cookies)
            responses.append(clients[scheme].get(path_of(url)))
            url = responses[-1].field("location")
            if url is None:
                break
            parts = urllib.parse.urlsplit(url)
            if parts.netloc not in ("", self.address):
                break
            scheme = parts.scheme or scheme
        return responses


def start_proxy(workdir, subject):
    folder = workdir.mkdir("proxy")
    certificate_file, key = certificate(workdir)
    ports = {scheme: workdir.free_port() for scheme in ("http", "https")}
    config = fill(
        workdir, "tls_proxy.conf", dir=folder, address=workdir.address, upstream=subject.host,
        http_port=ports["http"], https_port=ports["https"], certificate=certificate_file, key=key,
    )  # fmt: skip
    process = workdir.spawn("proxy", ["/usr/sbin/nginx", "-c", config])
    for port in ports.values():
        wait_for("proxy", listens(workdir.address, port), START_SECONDS, process)
    context = ssl.create_default_context(cafile=certificate_file)
    return Proxy(workdir.address, ports, context)


def certificate(workdir):
    """A certificate for the run's address, signed by itself; the paths of it and its key."""
    path, key = (workdir.join(name) for name in ("certificate.pem", "key.pem"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", "/CN=mayfly test", "-addext", f"subjectAltName=IP:{workdir.address}",
         "-keyout", key, "-out", path],
        check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    os.chmod(key, 0o600)
    return path, key


def key_fingerprint(certificate):
    """The hash of a certificate's public key, by which Chromium is told to trust it."""
    text = subprocess.run(["openssl", "x509", "-in", certificate, "-pubkey", "-noout"],
                          capture_output=True, text=True, check=True).stdout
    key = base64.b64decode("".join(line for line in text.splitlines() if not line.startswith("-")))
    return base64.b64encode(hashlib.sha256(key).digest()).decode()
