"""WordPress over HTTPS, `mayfly serve DIR --domain NAME`, in a real browser.

The certificate comes from an issuer, port 80 leads to HTTPS, and the site is installed over it.
Then login, writing, commenting and uploading as in `browser_wordpress`, with no failed request and
no address of the site without encryption in any page. Stored pages keep their scheme, and two
visitors never share what one of them alone may see.
"""

import glob
import os
import re
import socket
import ssl

from harness import subject as subjects
from harness import tls, wordpress
from harness.client import Client
from harness.issuer import Issuer
from harness.steps import Steps
from harness.webdriver import Browser
from harness.workdir import Workdir, listens, wait_for
from scenarios import browser_wordpress as plain

NAME = "blog.test"
ISSUED_SECONDS = 30
PAGES = ("/", "/first/", "/feed/", "/wp-login.php")


class Subject(subjects.Subject):
    """A server that has its certificate."""

    def __init__(self, workdir, options):
        issuer = Issuer(workdir)
        port, self.plain_port = workdir.free_port(), workdir.free_port()
        self.state = workdir.join("state")
        process = workdir.spawn("mayfly", [
            os.path.abspath(options.binary), "serve", wordpress.ROOT, "--domain", NAME,
            "--listen", f"{workdir.address}:{port}", "--listen-http", f"{workdir.address}:{self.plain_port}",
            "--acme-directory", issuer.directory, "--acme-ca", issuer.authority, "--acme-state", self.state,
            "--ttl", f"{round(options.ttl * 1000)}ms", "--workers", str(options.workers),
        ])  # fmt: skip
        super().__init__(workdir, "mayfly", process, port)
        self.host, self.url = f"{NAME}:{port}", f"https://{NAME}:{port}"
        wait_for("mayfly", listens(workdir.address, port), subjects.START_SECONDS, process)
        wait_for("the certificate", self.certificate, ISSUED_SECONDS, process)

    def certificate(self):
        """The file with it, once it is there and in use."""
        for path in glob.glob(os.path.join(self.state, "**", "*.pem"), recursive=True):
            with open(path) as file:
                text = file.read()
            if "BEGIN CERTIFICATE" in text and self.shown() in text.replace("\n", ""):
                return path
        return None

    def shown(self):
        """The certificate that a client is shown, as in a file."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection((self.address, self.port), timeout=5) as plain_socket:
            with context.wrap_socket(plain_socket, server_hostname=NAME) as connection:
                text = ssl.DER_cert_to_PEM_cert(connection.getpeercert(True))
        return "".join(text.splitlines()[1:-1])

    def client(self):
        """A visitor over HTTPS."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return Client(self.address, self.port, fields={"Host": self.host}, tls=context)


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: serve --domain is Mayfly's")
        return
    with Workdir("https", keep=options.keep) as workdir:
        failed = report.failed
        site = wordpress.Site(workdir)
        workdir.link_for_the_run(workdir.join("config.php"), f"/etc/wordpress/config-{NAME}.php")
        subject = Subject(workdir, options)
        admin = wordpress.User("root1", "Ada Admin", "administrator")
        site.install(subject, admin, subject.client())
        post = {"title": "First", "slug": "first", "author": admin.login, "content": "<p>The first post.</p>"}
        site.seed([admin], [post])
        # Its visit makes the rules of addresses anew. The site's own requests, by which WordPress does
        # so otherwise, need a name that resolves.
        owner = subject.client()
        wordpress.log_in(owner, admin)
        owner.get("/wp-admin/options-permalink.php")
        names = {NAME: workdir.address}
        key = tls.key_fingerprint(subject.certificate())
        browser, other = (
            Browser(workdir, name, origin=subject.url, names=names, trusted_key=key) for name in ("browser", "anonymous")
        )
        steps = Steps(report, browser, "https")
        plain.log_sees_failures(report, browser)
        plain.anonymous_reads(steps, browser)
        addresses(report, site, subject)
        stored_pages(report, subject, admin)
        with steps.step("the browser spoke HTTP/2 and believes the connection"):
            browser.open("/")
            found = browser.script(
                "return [isSecureContext, performance.getEntriesByType('navigation')[0].nextHopProtocol]"
            )
            assert found == [True, "h2"], found
        plain.login(steps, admin, browser)
        plain.block_editor(steps, options, browser, other)
        plain.comments(steps, options, admin, browser, other)
        plain.upload(steps, workdir, site, browser, other)
        no_plain_addresses(report, subject)
        plain.logout(steps, admin, browser)
        wrong = subject.stop()
        report.check("https: the server ran to the end and left no process behind", not wrong, wrong)
        if report.failed > failed:
            report.note(subject.logs())


def addresses(report, site, subject):
    """The site knows itself as https, and who comes without is led there."""
    [[address]] = site.select("SELECT option_value FROM wp_options WHERE option_name = 'siteurl'")
    report.check("https: the site was installed as https", address == subject.url, address)
    bare = Client(subject.address, subject.plain_port, fields={"Host": NAME})
    answer = bare.get("/first/?a=b")
    location = answer.field("location") or ""
    is_led = answer.status == 301 and re.fullmatch(rf"https://{NAME}(:{subject.port})?/first/\?a=b", location)
    report.check("https: port 80 leads to the same page over HTTPS", is_led, f"{answer.status} {location}")
    for target, wanted in (("/first", f"{subject.url}/first/"), ("/?p=1", f"{subject.url}/hello-world/")):
        for view in ("a miss", "a hit"):
            answer = subject.client().get(target)
            is_right = answer.status == 301 and answer.field("location") == wanted
            report.check(f"https: {target} leads to an https address, {view}", is_right,
                         f"{answer.status} {answer.field('location')}")  # fmt: skip
    answer = subject.client().get("/wp-admin/")
    location = answer.field("location") or ""
    report.check("https: the admin area asks for the password over HTTPS",
                 answer.status == 302 and location.startswith(f"{subject.url}/wp-login.php"), location)  # fmt: skip


def stored_pages(report, subject, admin):
    """A stored page is for those who are nobody; a user's pages, and cookies, are the user's."""
    user, stranger = subject.client(), subject.client()
    answers = wordpress.log_in(user, admin)
    cookies = [line.lower() for answer in answers for line in answer.all("set-cookie")
               if line.lower().startswith(("wordpress_sec_", "wordpress_logged_in_"))]  # fmt: skip
    report.check("https: cookies of the login are for encrypted connections alone",
                 cookies and all("; secure" in line for line in cookies), cookies)  # fmt: skip
    hits = 0
    for number in range(20):
        own, shared = user.get("/first/"), stranger.get("/first/")
        is_own = own.status == 200 and admin.token in own.text and not own.is_hit
        is_shared = shared.status == 200 and admin.token not in shared.text and "for user:0" in shared.text
        hits += shared.is_hit
        if not (is_own and is_shared):
            report.check("https: two visitors never share", False, f"view {number}: {own.cache_word} {shared.cache_word}")
            return
    report.check("https: two visitors never share, while strangers get the stored page", hits >= 5, f"{hits} hits")


def no_plain_addresses(report, subject):
    """Neither in what is made nor in what is stored."""
    for page in PAGES:
        for view in ("first", "second"):
            answer = subject.client().get(page)
            text = answer.text.replace("\\/", "/")
            found = re.findall(rf".{{20}}http://{NAME}.{{20}}", text)
            report.check(f"https: {page} names no address without encryption, {view} view",
                         answer.status == 200 and not found, f"{answer.status} {found[:3]}")  # fmt: skip
