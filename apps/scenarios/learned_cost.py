"""What the library of learned pages (`cache_learn`) costs PHP for a page of WordPress, or of MediaWiki on PostgreSQL (`--postgres`, which
counts instructions alone).

Processor time: two servers with one worker each on one site, one of which learns, make the same pages by turns. Two processes differ by
1 % without any library, so that both are started anew again and again; what is said is the median of the differences, and how far
half of them lie from each other. Instructions: the same pages by PHP-FPM under callgrind (valgrind), with the library and without. These counts
differ by less than 2 %, and what the kernel does is not in them.
"""

import copy
import shutil
import statistics
import time

from harness import learned, mediawiki, postgres, wordpress, wordpress_blog
from harness.client import Client
from harness.counted_php import Php
from harness.workdir import Workdir, children_of
from scenarios.learned_wordpress import LIFETIME_SECONDS

PAGES = ("/", "/article-5/", "/category/sport/")
STARTS, ROUNDS, WARM_UP = 12, 10, 4
COUNTED = 6
# Of a page, for each the most that the library takes.
MAX_INSTRUCTIONS = 1_000_000


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: it starts its servers itself")
        return
    if options.postgres:
        return of_wiki(options, report)
    original = wordpress_blog.block_theme()
    if original is None:
        report.note("left out: there is no theme of blocks here")
        return
    options = copy.copy(options)
    options.ttl, options.workers = LIFETIME_SECONDS, 1
    with Workdir("cost", keep=options.keep, parent=learned.SITES) as workdir:
        site = wordpress.Site(workdir, plugins=("wordpress_plugin_tables.php",))
        with open(workdir.join("config.php"), "a", encoding="utf-8") as config:
            config.write("define('DISABLE_WP_CRON', true);\n")
        names = wordpress_blog.put_themes(workdir, original)
        subject, _ = learned.start(workdir, options, wordpress.ROOT, site.database, "watch")
        wordpress_blog.install(site, subject, names)
        library = loaded_library(worker_of(subject))
        subject.stop()
        processor_time(report, workdir, options, site, subject.host)
        if shutil.which("valgrind"):
            instructions(report, workdir, subject, library, (wordpress.ROOT, PAGES))
        else:
            report.note("instructions are left out: valgrind is missing")


def of_wiki(options, report):
    options = copy.copy(options)
    options.ttl, options.workers = LIFETIME_SECONDS, 1
    with Workdir("cost", keep=options.keep, parent=learned.SITES) as workdir:
        database, port = postgres.start(workdir), workdir.free_port()
        root = mediawiki.Wiki(workdir, port, mediawiki.NO_CACHES, database).document_root("site", "")
        subject, _ = learned.start(workdir, options, root, database, "watch", port=port)
        ask(subject, subject.host, "/wiki/Main_Page", 0)
        library = loaded_library(worker_of(subject))
        subject.stop()
        instructions(report, workdir, subject, library, (root, ("/wiki/Main_Page", "/wiki/Special:AllPages")))


def worker_of(subject):
    """The only one of its pool, which has answered."""
    for pid in children_of(subject.process.pid):
        with open(f"/proc/{pid}/cmdline") as file:
            if file.read().startswith("php-fpm: pool"):
                return pid
    raise RuntimeError(f"no worker\n{subject.logs()}")


def loaded_library(pid):
    with open(f"/proc/{pid}/maps") as file:
        return next(line.split()[-1] for line in file if "/mayfly-learn-" in line)


def processor_microseconds(pid):
    """What a process has used when it waits for the next request."""
    for _ in range(1000):
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] == "S":
                break
        time.sleep(0.001)
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1000


def processor_time(report, workdir, options, site, host):
    more, whole = [], []
    for _ in range(STARTS):
        servers = [learned.start(workdir, options, wordpress.ROOT, site.database, mode, name=f"mayfly-{mode}")[0] for mode in ("off", "watch")]
        without, with_library = times(servers, host)
        for server in servers:
            server.stop()
        more.append(statistics.mean(with_library) - statistics.mean(without))
        whole.append(statistics.mean(without))
    low, middle, high = statistics.quantiles(more, n=4)
    report.note(
        f"a page costs {middle:.0f} us of processor time more with the library ({low:.0f} to {high:.0f} in half of {STARTS} starts), "
        f"{statistics.median(whole):.0f} us without"
    )


def times(servers, host):
    """For each server, the median of each page."""
    for number in range(WARM_UP):
        for server in servers:
            for page in PAGES:
                ask(server, host, page, number)
    spent = {server: {page: [] for page in PAGES} for server in servers}
    workers = {server: worker_of(server) for server in servers}
    for number in range(WARM_UP, WARM_UP + ROUNDS):
        for page in PAGES:
            # The second one finds more in the processor's caches.
            for server in servers[:: 1 if number % 2 else -1]:
                before = processor_microseconds(workers[server])
                ask(server, host, page, number)
                spent[server][page].append(processor_microseconds(workers[server]) - before)
    return [[statistics.median(times) for times in spent[server].values()] for server in servers]


def ask(server, host, page, number):
    """For a page that is not in memory."""
    answer = Client(server.address, server.port, fields={"Host": host}).get(f"{page}?number={number}")
    if answer.status != 200 or answer.is_hit:
        raise RuntimeError(f"{page} answers {answer.status} {answer.cache_word}")


def instructions(report, workdir, subject, library, site):
    root, pages = site
    counts = []
    for name, preloaded in (("without", None), ("with", library)):
        php = Php(workdir, name, preloaded)
        for page in pages * WARM_UP:
            make(php, subject, root, page)
        php.counts()
        counts.append([counted(php, subject, root, page) for page in pages])
    for page, (without, *misses_without), (with_library, *misses) in zip(pages, *counts, strict=True):
        more = with_library - without
        missed = [f"{with_ - without_:,.0f}" for with_, without_ in zip(misses, misses_without, strict=True)]
        report.note(
            f"{page} takes {more:,.0f} instructions more with the library, {without:,.0f} without; misses of the first caches for "
            f"instructions {missed[0]} more, for data {missed[1]}"
        )
        report.check(f"{page}: at most {MAX_INSTRUCTIONS:,} instructions more", 0 < more <= MAX_INSTRUCTIONS, more)


def make(php, subject, root, page):
    params = {
        "REQUEST_URI": page, "SCRIPT_NAME": "/index.php", "PHP_SELF": "/index.php", "QUERY_STRING": "",
        "DOCUMENT_ROOT": root, "SERVER_PROTOCOL": "HTTP/1.1", "SERVER_NAME": subject.address,
        "HTTP_HOST": subject.host, "REMOTE_ADDR": subject.address, "MAYFLY_FETCH": "1",
    }  # fmt: skip
    answer = php.get(f"{root}/index.php", params)
    if b"Status: " in answer.partition(b"\r\n\r\n")[0] or len(answer) < 10_000:
        raise RuntimeError(f"{page}: {answer[:300]}")


def counted(php, subject, root, page):
    """The least of some: once a minute WordPress does more."""

    def once():
        make(php, subject, root, page)
        return php.counts()

    return min(once() for _ in range(COUNTED))
