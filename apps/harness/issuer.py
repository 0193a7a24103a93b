"""Pebble, the issuer of certificates for tests, which believes whoever asks.

`scripts/setup.sh test` installs it. That challenges are answered is tested in
crates/mayfly/tests/program/acme.rs; here a site needs a certificate as it gets one.
"""

import json
import os
import subprocess

from .workdir import listens, wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "target", "tools", "pebble", "pebble")


class Issuer:
    """`directory` is its URL, `authority` the certificate that its own is signed with."""

    def __init__(self, workdir):
        folder = workdir.mkdir("issuer")
        self.authority = os.path.join(folder, "cert.pem")
        port, management = (workdir.free_port("127.0.0.1") for _ in range(2))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=issuer", "-addext", "basicConstraints=critical,CA:FALSE",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", os.path.join(folder, "key.pem"),
             "-out", self.authority],
            check=True, capture_output=True, timeout=30,
        )  # fmt: skip
        config = workdir.write("issuer/pebble.json", json.dumps({"pebble": {
            "listenAddress": f"127.0.0.1:{port}", "managementListenAddress": f"127.0.0.1:{management}",
            "certificate": self.authority, "privateKey": os.path.join(folder, "key.pem"),
            "httpPort": 1, "tlsPort": 1, "ocspResponderURL": "", "keyAlgorithm": "ecdsa",
            "retryAfter": {"authz": 1, "order": 1},
            "profiles": {"default": {"description": "usual", "validityPeriod": 7776000}},
        }}))  # fmt: skip
        env = {"PEBBLE_VA_ALWAYS_VALID": "1", "PEBBLE_VA_NOSLEEP": "1"}
        process = workdir.spawn("pebble", [PROGRAM, "-config", config], env=env)
        wait_for("pebble", listens("127.0.0.1", port), 15, process)
        self.directory = f"https://127.0.0.1:{port}/dir"
