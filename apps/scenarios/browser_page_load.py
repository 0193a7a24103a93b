"""`mayfly bench --page` asks for what headless Chromium asks for: a page of all kinds of assets, and WordPress.

What scripts load is left out of the comparison, since no script runs in `mayfly bench`.
"""

import json
import os
import subprocess

from harness import subject as subjects
from harness import wordpress
from harness.picture import png
from harness.webdriver import Browser
from harness.workdir import Workdir

PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Assets</title>
<link rel="preload" as="font" crossorigin href="/preloaded.woff2">
<link rel="stylesheet" href="/main.css?v=1&amp;w=2">
<link rel="stylesheet" media="print" href="/print.css">
<link rel="alternate stylesheet" title="other" href="/alternate.css">
<script src="/first.js"></script><script async src="/async.js"></script><script defer src="/defer.js"></script>
<script type="module" src="/module.js"></script><script nomodule src="/old.js"></script>
<style>@import url("/imported.css"); @font-face { font-family: Inline; src: url(/inline.woff2) format("woff2") }
h1 { font-family: Inline, serif }</style></head><body class="home">
<h1>Assets</h1>
<img alt="" src="/small.png" srcset="/small.png 300w, /medium.png 1000w, /large.png 2000w" sizes="(min-width: 600px) 900px, 100vw">
<img alt="" src="/one.png" srcset="/two.png 2x">
<picture><source media="(max-width: 500px)" srcset="/narrow.png"><source type="image/unknown" srcset="/unknown.png">
<source type="image/png" srcset="/source.png"><img alt="" src="/fallback.png"></picture>
<div class="hero">Text</div><div style="background-image: url('/attribute.png')">Text</div>
<a href="#" class="link">Link</a><p class="variable">Text</p><i>Slanted</i>
<noscript><img src="/noscript.png"></noscript><template><img src="/template.png"></template>
<svg width="9" height="9"><image href="/svg.png" width="9" height="9"/></svg>
<video poster="/poster.png"></video><input type="image" alt="" src="/button.png"><iframe src="/frame.html"></iframe>
<div style="height: 9000px"></div><img alt="" loading="lazy" src="/lazy.png" width="10" height="10">
<script src="/last.js"></script></body></html>
"""
FILES = {
    "main.css": """@import "nested.css" screen;
@font-face { font-family: Used; src: local("No Such Font"), url(used.woff2) format("woff2"); }
@font-face { font-family: Used; font-style: italic; src: url(used-italic.woff2) format("woff2"); }
@font-face { font-family: Used; src: url(cyrillic.woff2) format("woff2"); unicode-range: U+0400-04FF; }
@font-face { font-family: Unused; src: url(unused.woff2) format("woff2"); }
:root { --picture: url(variable.png); --unused: url(unused-variable.png) }
body { font-family: "Used", sans-serif; }
.hero { background: #eee url("hero.png") no-repeat } .gone { background: url(gone.png) }
.hero::after { content: url(after.png) } .link:hover { background: url(hover.png) }
.variable { background: var(--picture) }
@media print { .hero { color: red; background: url(printed.png) } }
@media (max-width: 400px) { .home { background: url(narrow-background.png) } }
@supports (display: grid) { ul, .home { list-style-image: url(unused-list.png) } .home > h1 { border-image: url(border.png) 3 } }
""",
    "nested.css": ".home { background: url(nested.png) }",
    "imported.css": "h1 { background: url(/imported.png) }",
    "print.css": ".hero { background: url(on-paper.png) }", "alternate.css": ".hero { background: url(chosen.png) }",
    "frame.html": "<!DOCTYPE html><p>Frame",
    **{f"{name}.js": "" for name in ("first", "async", "defer", "module", "old", "last")},
}  # fmt: skip
PICTURES = (
    "small medium large one two narrow unknown source fallback hero attribute noscript template svg poster button lazy gone after"
    " on-paper chosen hover variable unused-variable printed narrow-background border nested imported"
).split()  # fmt: skip


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: the command is Mayfly's")
        return
    with Workdir("page-load", keep=options.keep) as workdir:
        root = workdir.mkdir("assets", owner="root")
        os.chmod(root, 0o755)
        write(root, "index.html", PAGE.encode())
        for name, text in FILES.items():
            write(root, name, text.encode())
        for name in PICTURES:
            write(root, f"{name}.png", png())
        subject = subjects.start(workdir, options, "wordpress", root)
        compare(options, report, workdir, subject, "a page of all kinds of assets", "assets", "/", 24)
        subject.stop()
    with Workdir("page-load-wordpress", keep=options.keep) as workdir:
        site = wordpress.Site(workdir)
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
        site.install(subject, wordpress.User("root1", "Ada Admin", "administrator"))
        compare(options, report, workdir, subject, "WordPress, front page", "front", "/", 4)
        compare(options, report, workdir, subject, "WordPress, a post", "post", "/?p=1", 4)
        subject.stop()


def write(root, name, data):
    path = os.path.join(root, name)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o644)


def compare(options, report, workdir, subject, what, name, target, least):
    browser = Browser(workdir, name, origin=subject.url)
    browser.open(target)
    browser.settle()
    width, height = browser.script("return [innerWidth, innerHeight]")
    seen = {url for url, by in browser.requests() if by != "script" and url.startswith(subject.url)}
    browser.close()
    done = subprocess.run(
        [os.path.abspath(options.binary), "bench", "--page", subject.url + target, "--runs", "1", "--json",
         "--viewport", f"{width}x{height}"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    report.check(f"{what}: it was loaded", done.returncode == 0, done.stderr)
    resources = json.loads(done.stdout)["pages"][0]["cold_load"]["resources"] if done.returncode == 0 else []
    asked = {resource["url"] for resource in resources}
    report.check(f"{what}: at least {least} addresses", len(seen) >= least, sorted(seen))
    report.check(
        f"{what}: the addresses are those of the browser", asked == seen,
        f"only the browser: {sorted(seen - asked)}; only mayfly bench: {sorted(asked - seen)}",
    )  # fmt: skip
