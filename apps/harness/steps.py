"""Steps of a browser scenario: each is one named check.

A step that raises is a failed check with a screenshot; the later steps are
still tried. After each step the browser's network log must hold no failed
request.
"""

import contextlib
import shutil
import tempfile


class Steps:
    def __init__(self, report, browser, prefix):
        self.report = report
        self.browser = browser
        self.prefix = prefix
        self.evidence = None

    @contextlib.contextmanager
    def step(self, name, expected_failures=(), browser=None):
        browser = browser or self.browser
        full_name = f"{self.prefix}: {name}"
        try:
            yield
            browser.settle()
            bad = browser.failures(expected_failures)
            is_good = self.report.check(full_name, not bad, f"failed requests: {bad[:6]}")
        except Exception as error:
            browser_log = []
            with contextlib.suppress(Exception):
                browser_log = browser.failures(expected_failures)
            is_good = self.report.check(full_name, False, f"{type(error).__name__}: {error} {browser_log[:6]}")
        if not is_good:
            self._keep_evidence(full_name, browser)

    def _keep_evidence(self, name, browser):
        """A screenshot that outlives the scenario's directory."""
        try:
            self.evidence = self.evidence or tempfile.mkdtemp(prefix="mayfly-screenshots-")
            word = "".join(c if c.isalnum() else "_" for c in name)[:80]
            kept = shutil.copy(browser.screenshot("failure"), f"{self.evidence}/{word}.png")
            self.report.note(f"at {browser.url}, see {kept}")
        except Exception as error:
            self.report.note(f"no screenshot: {error}")
