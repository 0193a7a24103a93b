"""What is compared: one entry for each scenario, in the order in which they run.

A new scenario is a new entry. `Scenario` says what its fields mean; bench/compare.py
runs them and bench/lib/peers.py knows who takes part.
"""

import dataclasses

KB = 1 << 10
MB = 1 << 20

# A page, its size and its lifetime, as every server under comparison has it.
PAGE = "/page/{}?bytes=%d&age=3600"
ALL = ("mayfly", "nginx", "varnish", "haproxy", "apache")
SMALL = ("mayfly", "nginx", "nginxcopying", "varnish", "haproxy", "apache")
FILES = ("mayfly", "nginx", "apache")

# What Chrome sends with a click on a link.
BROWSER = (
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/142.0.0.0 Safari/537.36",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8",
    "Accept-Encoding: gzip, br",
    "Referer: http://bench.example/",
    "Upgrade-Insecure-Requests: 1",
)


# The floor only receives and sends, and on this path nearly all of its time is the kernel's: where it has half
# of nginx's time, no server can have less. So a goal that is about the kernel's work is a ratio to the floor.
FLOOR = ("cpu_us", "floor", 1.35)

# What the comparison must show, in words, and the scenarios whose goals stand for it.
MUST_SHOW = [
    ("40-byte page: CPU per hit at most 0.5x of nginx and 1.35x of the floor", ["page_40"]),
    ("21 KB page: at most 0.65x of nginx and 1.35x of the floor; with access log at most 0.6x of nginx "
     "with its buffered log", ["page_21k", "log_buffered"]),
    ("21 KB page asked with `Accept-Encoding: gzip, br`: at most 1.35x of the floor, at most 0.5x of "
     "Varnish", ["page_21k_browser"]),
    ("304 and HEAD: at most 1.35x of the floor", ["not_modified", "head"]),
    ("Zipf over 100,000 keys: at most 0.5x of nginx, 99.9th percentile not above nginx's", ["zipf"]),
    ("Expiry every second under 1,000 connections: 99.9th percentile at most 1.35x of the "
     "floor's", ["expiry_second"]),
    ("Cold misses of a one-line script through PHP-FPM: at least nginx's requests per second with "
     "`fastcgi_keep_conn on`, at most its CPU", ["cold"]),
    ("Static files: 1 KB and 64 KB at most nginx's CPU per request, 10 MB at most 1.1x",
     ["file_1k", "file_64k", "file_10m"]),
    ("10,000 idle connections: at most 4 KB of resident memory each", ["idle"]),
]
NOTHING_LEFT_OUT = "No scenario where a peer beats Mayfly is left out of the table"


@dataclasses.dataclass
class Scenario:
    name: str
    title: str
    # A sentence for the page: what is asked, and what to know when reading the figures.
    what: str
    # `{}` in it is the page number, where there are several.
    target: str
    # Bytes of the body before compression.
    body_bytes: int
    # Requests per second of the second half of each round, where latency is taken: what
    # every server here can do, so that all are asked the same.
    rate: float
    peers: tuple = ALL
    method: str = "GET"
    fields: tuple = ()
    status: int = 200
    log: str = "none"
    gzip: bool = False
    connections: int = 50
    per_connection: int = None
    idle: int = 0
    # Pages asked by Zipf, all of them stored before the measuring begins.
    zipf_pages: int = 0
    # Each request for a page that was never asked.
    is_cold: bool = False
    # Milliseconds of CPU that PHP needs for the page.
    php_milliseconds: int = 0
    # Beside the peers, Mayfly with this target, which nobody caches.
    uncached: str = None
    floor: tuple = ()
    # Shorter rounds would not see what the scenario is about, in seconds.
    least_seconds: float = 0
    # (figure, of whom or None for the figure itself, at most how many times it). Where the
    # issue of a goal is a ratio, its median over the rounds counts.
    goals: tuple = ()

    def quick(self):
        """The same with fewer of everything."""
        return dataclasses.replace(
            self, zipf_pages=min(self.zipf_pages, 3000), idle=min(self.idle, 2000),
            least_seconds=min(self.least_seconds, 2),
        )


SCENARIOS = [
    Scenario(
        "page_40", "40-byte page",
        "One stored page over 50 kept connections. What a hit costs where hardly anything is copied.",
        PAGE % 40, 40, 5000, peers=SMALL, uncached="/uncached/?bytes=40",
        goals=(("cpu_us", "nginx", 0.5), FLOOR),
    ),
    Scenario(
        "page_21k", "21 KB page",
        "The same with a page of the usual size, asked by a client that takes no compression.",
        PAGE % (21 * KB), 21 * KB, 5000, peers=SMALL, uncached=f"/uncached/?bytes={21 * KB}",
        goals=(("cpu_us", "nginx", 0.65), FLOOR),
    ),
    Scenario(
        "page_21k_browser", "21 KB page as browsers ask for it",
        "With the request fields of Chrome, `Accept-Encoding: gzip, br` among them, and compression on. "
        "nginx and HAProxy compress every answer anew, Varnish and Apache store the compressed page.",
        PAGE % (21 * KB) + "&words=1", 21 * KB, 500, gzip=True, fields=BROWSER,
        goals=(FLOOR, ("cpu_us", "varnish", 0.5)),
    ),
    Scenario(
        "log_plain", "21 KB page with an access log",
        "A line per request to a file on tmpfs in the combined format. Varnish has varnishncsa write it, "
        "HAProxy (in its own format) writes to standard output.",
        PAGE % (21 * KB), 21 * KB, 5000, log="plain", fields=BROWSER[:1],
    ),
    Scenario(
        "log_buffered", "21 KB page with a buffered access log",
        "The same with lines gathered before they are written, by those who can.",
        PAGE % (21 * KB), 21 * KB, 5000, log="buffered", fields=BROWSER[:1],
        peers=("mayfly", "nginx", "varnish", "apache"),
        goals=(("cpu_us", "nginx", 0.6),),
    ),
    Scenario(
        "not_modified", "304 answers",
        "The client has the page already and names its `ETag`.",
        PAGE % (21 * KB), 0, 5000, status=304, fields=('If-None-Match: "a-page-of-the-benchmark"',),
        goals=(FLOOR,),
    ),
    Scenario(
        "head", "HEAD",
        "The head alone of a stored page. It was stored by a GET.",
        PAGE % (21 * KB), 0, 1000, method="HEAD",
        goals=(FLOOR,),
    ),
    Scenario(
        "zipf", "100,000 pages by Zipf",
        "Pages of 2 KB, page number n asked with a weight of 1/n. All of them are stored beforehand.",
        PAGE % (2 * KB), 2 * KB, 5000, peers=SMALL, zipf_pages=100_000,
        goals=(("cpu_us", "nginx", 0.5), ("p99_9_us", "nginx", 1.0)),
    ),
    Scenario(
        "one_per_connection", "One request per connection",
        "21 KB page; the client asks the server to close, and connects anew for the next.",
        PAGE % (21 * KB), 21 * KB, 1000, per_connection=1, floor=("--per-connection", "1"),
    ),
    Scenario(
        "ten_per_connection", "Ten requests per connection",
        "The same after ten requests, as a browser that loads a page and its parts.",
        PAGE % (21 * KB), 21 * KB, 2000, per_connection=10, floor=("--per-connection", "10"),
    ),
    Scenario(
        "idle", "10,000 idle connections beside 50 busy ones",
        "Each idle connection had one answer and is kept open. Memory is the resident memory they add, each.",
        PAGE % (21 * KB), 21 * KB, 5000, idle=10_000,
        goals=(("idle_kb", None, 4),),
    ),
    Scenario(
        "expiry_second", "Page expiring every second under 1,000 connections",
        "The page costs PHP 27 ms of CPU on the server's core. nginx has `background_update`, `use_stale` and "
        "lock on, Varnish its grace, Apache its lock; HAProxy has nothing of the kind.",
        f"/page/{{}}?bytes={21 * KB}&age=1", 21 * KB, 2000, connections=1000, php_milliseconds=27,
        least_seconds=5, goals=(("p99_9_us", "floor", 1.35),),
    ),
    Scenario(
        "expiry_fifth", "Page expiring every 200 ms under 1,000 connections",
        "The same with a lifetime that only Mayfly and Varnish can be given: the others count whole seconds.",
        f"/fifth/{{}}?bytes={21 * KB}", 21 * KB, 2000, connections=1000, php_milliseconds=27,
        least_seconds=5, peers=("mayfly", "varnish"),
    ),
    Scenario(
        "cold", "Cold misses",
        "Every request is for a page never asked before, made by a PHP script of one line through PHP-FPM, "
        "which shares the server's core; its own CPU time is not counted. Varnish needs an nginx before PHP, "
        "which is counted.",
        "/cold/{}", 2, 500, connections=32, is_cold=True,
        goals=(("cpu_us", "nginx", 1.0), ("seconds_per_request", "nginx", 1.0)),
    ),
    Scenario(
        "file_1k", "Static file of 1 KB", "From the page cache of the operating system.",
        "/files/1k.html", KB, 5000, peers=FILES, goals=(("cpu_us", "nginx", 1.0),),
    ),
    Scenario(
        "file_64k", "Static file of 64 KB", "The same with a file of 64 KB.",
        "/files/64k.html", 64 * KB, 2000, peers=FILES, floor=("--sendfile",),
        goals=(("cpu_us", "nginx", 1.0),),
    ),
    Scenario(
        "file_10m", "Static file of 10 MB", "Four connections; what counts is how the bytes get to the socket.",
        "/files/10m.html", 10 * MB, 20, peers=FILES, connections=4, floor=("--sendfile",),
        goals=(("cpu_us", "nginx", 1.1),),
    ),
]
