"""Headless Chromium over HTTP/2 and HTTP/3: a page, 200 parts at once, an upload, a cancelled download."""

import re
import shutil
import subprocess

from harness import subject as subjects
from harness import tls
from harness.workdir import Workdir

# The name that the browser asks for; it is mapped to the run's address.
NAME = "protocols.test"
PARTS = 200
UPLOAD_BYTES = 4 << 20
LONG_BYTES = 64 << 20


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: Debian's nginx has no HTTP/3")
        return
    with Workdir("protocols", keep=options.keep) as workdir:
        failed = report.failed
        certificate, key = tls.certificate(workdir)
        long = workdir.join("long")
        with open(long, "wb") as file:
            file.truncate(LONG_BYTES)
        subject = subjects.start_with(
            workdir, options, "protocols.conf", certificate=certificate, key=key, long=long, upstream=workdir.free_port(),
        )  # fmt: skip
        for protocol, version in (("h2", "HTTP/2.0"), ("h3", "HTTP/3.0")):
            found = browse(workdir, protocol, subject.port, certificate)
            report.check(f"{protocol}: all parts and the upload were answered", found == f"{protocol} true 204", found)
            check_log(report, workdir, protocol, version)
        report.check("protocols: the server ran to the end", not (wrong := subject.stop()), wrong)
        if report.failed > failed:
            report.note(workdir.log_tail("subject/error"))


def browse(workdir, protocol, port, certificate):
    """What the page says at its end."""
    quic = {"h2": "--disable-quic", "h3": f"--origin-to-force-quic-on={NAME}:{port}"}[protocol]
    profile = workdir.mkdir(f"profile-{protocol}", owner="root")
    told = subprocess.run(
        [shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-proxy-server", f"--user-data-dir={profile}", "--virtual-time-budget=20000", quic,
         f"--ignore-certificate-errors-spki-list={tls.key_fingerprint(certificate)}",
         f"--host-resolver-rules=MAP {NAME} {workdir.address}, MAP * ~NOTFOUND",
         "--dump-dom", f"https://{NAME}:{port}/"],
        capture_output=True, text=True, timeout=120,
    ).stdout  # fmt: skip
    found = re.search(r'<p id="found">([^<]*)</p>', told)
    return found[1] if found else told[:300]


def check_log(report, workdir, protocol, version):
    with open(workdir.join("subject", "access.log")) as file:
        lines = [line.split() for line in file if line.startswith(version)]
    parts = [line for line in lines if line[4].startswith("/part/") and line[2] == "200"]
    uploads = [line for line in lines if line[4] == "/upload" and int(line[3]) >= UPLOAD_BYTES]
    report.check(f"{protocol}: {PARTS} requests went this way", len(parts) == PARTS, f"{len(parts)} of them")
    report.check(f"{protocol}: the upload went this way, all of it", len(uploads) == 1, str(uploads))
