"""axe-core: what of a page keeps people from using it, by the rules of WCAG that a program can check.

Fetched by setup.sh, and run in the page by the browser's driver, which the page's own content security
policy does not bind.
"""

import glob
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAVE = ("serious", "critical")
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, { resultTypes: ["violations"] }).then((found) => done(found.violations.map((one) =>
  ({ id: one.id, impact: one.impact, at: one.nodes.map((node) => node.target.join(" ") + ": " + node.failureSummary) }))),
  (error) => done([{ id: String(error), impact: "critical", at: [] }]));
"""


def program():
    """Where it is; none where it could not be fetched."""
    found = glob.glob(os.path.join(ROOT, "target", "tools", "axe", "axe-*.min.js"))
    return found[0] if found else None


def faults(browser, path):
    """What it finds serious or critical in the page as it is now shown."""
    if not browser.script("return typeof axe === 'object'"):
        with open(path, encoding="utf-8") as file:
            # A script of the driver is a function: what it declares ends with it.
            browser.script("" + file.read() + "; window.axe = window.axe ?? axe")
    found = browser.script_until_done(RUN)
    return [f"{one['id']} ({one['impact']}): {one['at'][:3]}" for one in found if one["impact"] in GRAVE]
