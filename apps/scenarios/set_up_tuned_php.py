"""Tuned PHP-FPM behind two caches (files/set_ups/tuned_php.conf), whose pools are the server's own.

Workers are static, dynamic and on demand; pages and static files are cached; a page stays online
while PHP fails, hangs or is killed; pages are purged, validated and fetched in slices; a search by
POST is cached; 100 users are served over HTTP and over HTTP/2 with TLS.
"""

import collections
import contextlib
import os
import signal
import subprocess
import threading
import time

from harness import set_ups, tls
from harness.client import Client
from harness.set_ups import facts, hit, until
from harness.workdir import Workdir, children_of

USERS = 100
REQUESTS = 4000
TLS_REQUESTS = 200
PAGES = 10
SLICE_BYTES = 128 * 1024
VIDEO_BYTES = 5 * SLICE_BYTES + 1000
# In which PHP-FPM is killed under the users' hands.
OUTAGE_SECONDS = 1.5
# What PHP takes while it is slow (files/set_ups/site.php): four times fastcgi_read_timeout.
SLOW_SECONDS = 4


def run(options, report):
    if options.subject == "nginx":
        report.note("left out: nginx has no pools")
        return
    with Workdir("tuned-php", keep=options.keep) as workdir:
        site = set_ups.Site(workdir, "site.php")
        assets = workdir.mkdir("assets")
        workdir.write("assets/app.css", set_ups.STYLE)
        workdir.mkdir("assets/video")
        video = os.urandom(VIDEO_BYTES)
        with open(workdir.join("assets/video/film.mp4"), "wb") as file:
            file.write(video)
        certificate, key = tls.certificate(workdir)
        ports = {"tls_port": workdir.free_port(), "assets_port": workdir.free_port()}
        subject = set_ups.start(
            workdir, options, "tuned_php", root=site.root, data=site.data, assets=assets,
            certificate=certificate, key=key, **ports,
        )  # fmt: skip
        failed = report.failed
        pools(report, subject)
        files_and_pages(report, subject)
        validation(report, subject, site)
        posts(report, subject)
        purges(report, subject)
        slices(report, subject, video, workdir.join("subject", "assets.log"))
        always_online(report, subject, site)
        users(report, subject, ports["tls_port"], certificate)
        report.check("tuned PHP: the server ran to the end", not (wrong := subject.stop()), wrong)
        if report.failed > failed:
            report.note(subject.logs())
            report.note(workdir.log_tail("subject/error"))


def visitor(subject, **fields):
    return Client(subject.address, subject.port, fields=fields)


def php_processes(subject):
    """Pids of PHP-FPM's processes, by what `ps` says of them."""
    found = collections.defaultdict(list)
    for pid in children_of(subject.process.pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            name = file.read().replace(b"\0", b" ").decode().strip()
            if name.startswith("php-fpm"):
                found[name].append(pid)
    return found


def workers(subject, pool):
    return len(php_processes(subject)[f"php-fpm: pool {pool}"])


def pools(report, subject):
    def counts():
        return [workers(subject, pool) for pool in ("site", "admin", "jobs")]

    is_right = until(lambda: counts() == [4, 1, 0])
    report.check("tuned PHP: 4 workers are static, 1 dynamic, none is there on demand", is_right, counts())
    for target in ("/admin/list", "/jobs/mail"):
        page = visitor(subject).get(target)
        report.check(f"tuned PHP: {target} is made by its pool", facts(page) != {}, page.status)
    report.check("tuned PHP: one worker came for the job", workers(subject, "jobs") == 1, counts())
    report.check("tuned PHP: and went when it was idle", until(lambda: workers(subject, "jobs") == 0), counts())


def files_and_pages(report, subject):
    index, page = visitor(subject).get("/"), visitor(subject).get("/page/1")
    is_php = all(facts(one) for one in (index, page))
    report.check("tuned PHP: index and try_files lead to the script", is_php, f"{index.status} {page.status}")
    report.check("tuned PHP: a page is kept", hit(visitor(subject), "/page/1").cache_word == "HIT")
    words = []
    for fields in ({}, {}, {"Range": "bytes=0-3"}):
        asset = visitor(subject, **fields).get("/app.css")
        words.append((asset.status, asset.cache_word, asset.text[:4], asset.field("cache-control")))
    week = f"max-age={7 * 86400}"
    wanted = [(200, "MISS", "body", week), (200, "HIT", "body", week), (206, "HIT", "body", week)]
    report.check("tuned PHP: a static file as well, with ranges, and by browsers for a week", words == wanted, words)


def validation(report, subject, site):
    made = facts(hit(visitor(subject), "/page/2"))["execution"]
    before = site.executions("/page/2")
    # The stale page is shown, and fresh again when PHP has said 304: asked, and not made.
    asked = until(lambda: visitor(subject).get("/page/2") and site.executions("/page/2") > before)
    page = hit(visitor(subject), "/page/2")
    is_same = page.cache_word == "HIT" and facts(page)["execution"] == made
    report.check("tuned PHP: an old page is validated with PHP, and kept", asked and is_same, describe(page))


def posts(report, subject):
    client = visitor(subject)
    answer = client.post("/comment", form={"text": "a tree"})
    report.check("tuned PHP: a comment is written", answer.status == 303, describe(answer))
    seen = until(lambda: "a tree" in facts(visitor(subject).get("/"))["comments"])
    report.check("tuned PHP: and shown to others", seen)
    found = [client.post("/search", form={"word": word}) for word in ("tree", "tree", "house")]
    words = [(one.cache_word, facts(one)["comments"]) for one in found]
    wanted = [("MISS", ["a tree"]), ("HIT", ["a tree"]), ("MISS", [])]
    report.check("tuned PHP: a search by POST is kept, each by its words", words == wanted, words)


def purges(report, subject):
    client = visitor(subject)
    for target in ("/page/3", "/app.css"):
        hit(client, target)
        gone = client.request("PURGE", target)
        after = client.get(target)
        is_gone = (gone.status, after.cache_word) == (200, "MISS")
        report.check(f"tuned PHP: PURGE removes {target}", is_gone, f"{gone.status} {describe(after)}")
    absent = client.request("PURGE", "/page/none").status
    report.check("tuned PHP: and says so if there is nothing", absent == 404, absent)


def slices(report, subject, video, log):
    def part(first, last):
        answer = visitor(subject, Range=f"bytes={first}-{last}").get("/video/film.mp4")
        return answer.status == 206 and answer.body == video[first : last + 1], answer

    right, answer = part(SLICE_BYTES + 10, SLICE_BYTES + 20)
    report.check("tuned PHP: a range of a film", right, describe(answer))
    right, answer = part(2 * SLICE_BYTES - 5, 2 * SLICE_BYTES + 5)
    report.check("tuned PHP: a range of two slices", right, describe(answer))
    right, again = part(SLICE_BYTES, 3 * SLICE_BYTES - 1)
    report.check("tuned PHP: the same two slices from memory", right and again.cache_word == "HIT", describe(again))
    whole = visitor(subject).get("/video/film.mp4")
    report.check("tuned PHP: the whole film", whole.status == 200 and whole.body == video, describe(whole))
    count = -(-VIDEO_BYTES // SLICE_BYTES)

    def fetched():
        with open(log, encoding="utf-8") as file:
            return sorted(line.split()[-1] for line in file if "film.mp4" in line)

    wanted = sorted(f"bytes={first * SLICE_BYTES}-{(first + 1) * SLICE_BYTES - 1}" for first in range(count))
    report.check("tuned PHP: each slice was fetched once", until(lambda: fetched() == wanted), fetched())


def always_online(report, subject, site):
    for trouble in ("broken", "slow"):
        hit(visitor(subject), "/page/4")
        before = site.executions("/page/4")
        site.set(trouble)
        # Until PHP has been asked in vain.
        pages = []
        until(lambda pages=pages: pages.append(visitor(subject).get("/page/4")) or site.executions("/page/4") > before)
        for _ in range(5):
            pages.append(visitor(subject).get("/page/4"))
        took = max(page.ended - page.began for page in pages)
        statuses = {page.status for page in pages}
        is_whole = all(facts(page) for page in pages)
        report.check(f"tuned PHP: PHP is {trouble}, and the page stays", statuses == {200} and is_whole, statuses)
        report.check("tuned PHP: without waiting for it", took < SLOW_SECONDS, f"{took:.2f} s")
        new = visitor(subject).get(f"/page/{trouble}")
        wanted = 500 if trouble == "broken" else 504
        report.check(f"tuned PHP: a page that nobody has seen is {wanted}", new.status == wanted, describe(new))
        site.set(trouble, False)
        asked = site.executions("/page/4")
        back = until(lambda asked=asked: visitor(subject).get("/page/4").status == 200 and site.executions("/page/4") > asked, 15)
        report.check("tuned PHP: and PHP is asked again afterwards", back)
    killed(report, subject, site)


def killed(report, subject, site):
    targets = [f"/page/{number}" for number in range(PAGES)]
    for target in targets:
        hit(visitor(subject), target)
    ends = time.monotonic() + OUTAGE_SECONDS
    answers = set_ups.load.Answers()

    def until_over():
        while time.monotonic() < ends:
            yield targets[answers.count % PAGES]

    crowd = threading.Thread(
        target=set_ups.crowd, args=(subject, until_over(), USERS), kwargs={"pause": 0.05, "answers": answers}, daemon=True
    )  # fmt: skip
    crowd.start()
    until(lambda: answers.count > USERS)
    killed_pids = [pid for pids in php_processes(subject).values() for pid in pids]
    before = answers.count
    for pid in killed_pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    crowd.join(set_ups.load.ANSWER_TIMEOUT_SECONDS)
    report.note(f"{answers.count - before} answers after {len(killed_pids)} processes of PHP-FPM were killed; {answers.summary()}")
    is_all = answers.count - before > USERS and not answers.other_than_200()
    report.check(f"tuned PHP: PHP-FPM is killed, and {USERS} users get nothing but 200", is_all, answers.summary())
    fresh = until(lambda: facts(visitor(subject).get(f"/page/new-{time.monotonic_ns()}")) != {})
    report.check("tuned PHP: and new pages are made again", fresh)
    report.check("tuned PHP: by new workers", until(lambda: workers(subject, "site") == 4), php_processes(subject))


def users(report, subject, tls_port, certificate):
    answers = set_ups.crowd(subject, (f"/page/{number % PAGES}" for number in range(REQUESTS)), USERS)
    set_ups.check_crowd(report, f"tuned PHP: {USERS} users at once", answers, REQUESTS)
    # Many streams of a few connections, as browsers ask.
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--cacert", certificate, "--http2", "--parallel", "--parallel-max", str(USERS),
         "--output", "/dev/null", "--write-out", "%{http_version} %{http_code}\n",
         f"https://{subject.address}:{tls_port}/page/[1-{PAGES}]?view=[1-{TLS_REQUESTS // PAGES}]"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    said = collections.Counter(done.stdout.splitlines())
    is_all = said == {"2 200": TLS_REQUESTS}
    report.check(f"tuned PHP: and over HTTP/2 with TLS, {TLS_REQUESTS} requests, none failed", is_all, f"{said} {done.stderr}")


def describe(answer):
    return f"{answer.status} {answer.cache_word} {len(answer.body)} bytes"
