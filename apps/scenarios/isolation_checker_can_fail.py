"""The isolation checker sees a leak where there is one.

The same site behind an nginx whose cache does not care for cookies, until each kind
of leak was seen: pages of logged-in users reach the crowd, and the checker must say so.
A checker that stays silent here proves nothing elsewhere.
"""

import copy

from harness import subject as subjects
from harness import wordpress
from harness.workdir import Workdir

from . import wordpress_isolation

# An idle machine needs a few.
MAX_SECONDS = 120
EXPECTED = (
    "page of another person",
    "admin bar for anonymous",
    "secret of another person",
    "nonce of another person",
    "Set-Cookie of another person",
    "Set-Cookie from memory",
    "private page of another person",
    "anonymous page for a user",
    "own write not shown at once",
)


def run(options, report):
    options = copy.copy(options)
    options.subject = "nginx-careless"
    options.seconds = MAX_SECONDS
    with Workdir("careless", keep=options.keep) as workdir:
        site = wordpress.Site(workdir)
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
        stage = wordpress_isolation.prepare(options, site, subject)
        found = stage.ledger.violations
        stage.is_enough = lambda: all(found[rule] for rule in EXPECTED)
        wordpress_isolation.act(stage)
        report.note(f"{stage.ledger.responses} responses; violations: {dict(found)}")
        for rule in EXPECTED:
            report.check(f"a careless cache is caught: {rule}", found[rule] > 0, "not seen")
