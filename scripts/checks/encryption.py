"""TLS as sslscan and OpenSSL's client see it."""

import contextlib
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree

import encrypted
from lib import subject

CONFIG = """
daemon off;
@USER@
pid pid;
error_log error.log;
events {}
http {
    server {
        listen 127.0.0.1:@PORT@ ssl;
        ssl_certificate @RSA@;
        ssl_certificate_key @RSA@;
        ssl_certificate @ECDSA@;
        ssl_certificate_key @ECDSA@;
        return 200;
    }
}
"""
MODERN = {"1.2", "1.3"}
STRENGTHS = {"acceptable", "strong"}


def checks(binary):
    def scanned(check):
        def run():
            with server(binary) as port:
                told = run_tool("sslscan", "--no-colour", "--xml=-", f"127.0.0.1:{port}")
                check(xml.etree.ElementTree.fromstring(told))
        return run

    def resumed(version):
        def run():
            with server(binary) as port:
                resumes(port, version)
        return run

    return [
        ("nothing_below_tls_1_2_is_spoken", scanned(protocols)),
        ("no_cipher_is_weak_and_each_keeps_its_secrets_when_the_key_is_lost", scanned(ciphers)),
        ("there_is_no_renegotiation_no_compression_no_heartbleed", scanned(faults)),
        ("a_session_of_tls_1_2_is_resumed", resumed("tls1_2")),
        ("a_session_of_tls_1_3_is_resumed", resumed("tls1_3")),
    ]


@contextlib.contextmanager
def server(binary):
    """The port of a server with an RSA and an ECDSA key, otherwise as it is by default."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        ecdsa, rsa = encrypted.make_keys(folder)
        with subject.Daemon(subject.kind_of(binary), folder) as daemon:
            template = os.path.join(folder, "encryption.conf")
            with open(template, "w") as file:
                file.write(CONFIG)
            config = daemon.configure(template, daemon.name, {"RSA": rsa, "ECDSA": ecdsa})
            daemon.start(subject.command_of(binary, daemon.folder, config))
            daemon.wait()
            yield daemon.port


def run_tool(*command, said=""):
    return subprocess.run(command, input=said, capture_output=True, text=True, timeout=120).stdout


def protocols(scan):
    spoken = {one.get("version") for one in scan.iter("protocol") if one.get("enabled") == "1"}
    assert spoken == MODERN, f"spoken: {sorted(spoken)}"


def ciphers(scan):
    found = [one.attrib for one in scan.iter("cipher")]
    assert {one["sslversion"].removeprefix("TLSv") for one in found} == MODERN, found
    for one in found:
        assert one["strength"] in STRENGTHS and int(one["bits"]) >= 128, one
        # An ephemeral key exchange: what was recorded cannot be read with the server's key later.
        assert one["cipher"].startswith(("TLS_", "ECDHE-")), one


def faults(scan):
    assert all(one.get("supported") == "0" for one in scan.iter("renegotiation"))
    assert all(one.get("supported") == "0" for one in scan.iter("compression"))
    assert all(one.get("vulnerable") == "0" for one in scan.iter("heartbleed"))


def resumes(port, version):
    with tempfile.TemporaryDirectory() as folder:
        session = os.path.join(folder, "session")
        client = ["openssl", "s_client", f"-{version}", "-connect", f"127.0.0.1:{port}"]
        request = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
        # The client reads until the server closes, and the tickets of TLS 1.3 with it.
        first = run_tool(*client, "-ign_eof", "-sess_out", session, said=request)
        second = run_tool(*client, "-ign_eof", "-sess_in", session, said=request)
    assert re.search(r"^New, ", first, re.MULTILINE), first
    assert re.search(r"^Reused, ", second, re.MULTILINE), second
