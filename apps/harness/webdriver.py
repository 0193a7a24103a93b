"""Headless Chromium, driven over the W3C WebDriver protocol.

Standard library only: chromedriver is a local HTTP server that takes JSON.
`network` returns what the browser's own network log recorded, so a failed
picture or script cannot hide behind a page that looks right.
"""

import base64
import json
import shutil
import time
import urllib.error
import urllib.request

from .workdir import listens, wait_for

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
WAIT_SECONDS = 20
COMMAND_SECONDS = 90


class WebDriverError(RuntimeError):
    pass


class Exchange:
    """One response, or failure, in the browser's network log."""

    def __init__(self, url, status, reason, kind, from_cache, fields):
        self.url = url
        self.status = status  # 0 where no response came
        self.reason = reason
        self.kind = kind  # Document, Script, Image, XHR, Fetch, ...
        self.from_cache = from_cache
        self.fields = fields

    def __repr__(self):
        return f"{self.status or self.reason} {self.kind} {self.url}"


class Browser:
    """One Chromium with an empty profile; ends with the scenario.

    `names` are hosts with the loopback address of each; `trusted_key` is the fingerprint of a
    certificate's key that it believes (`tls.key_fingerprint`)."""

    def __init__(self, workdir, name="browser", origin=None, names=None, trusted_key=None):
        self.workdir = workdir
        self.name = name
        self.origin = origin
        for program in ("chromium", "chromedriver"):
            if shutil.which(program) is None:
                raise RuntimeError(f"no {program}: install Debian's chromium and chromium-driver")
        profile = workdir.mkdir(f"{name}-profile", owner="root")
        home = workdir.mkdir(f"{name}-home", owner="root")
        port = self._start_driver(workdir, name, home)
        self._base = f"http://127.0.0.1:{port}"
        self._session = None
        self._log = []
        known = "".join(f"MAP {host} {address}, " for host, address in (names or {}).items())
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--window-size=1300,1000", f"--user-data-dir={profile}",
            "--no-proxy-server",
            # Loopback only: no other name resolves.
            f"--host-resolver-rules={known}MAP * ~NOTFOUND, EXCLUDE 127.*",
        ]  # fmt: skip
        if trusted_key:
            arguments.append(f"--ignore-certificate-errors-spki-list={trusted_key}")
        made = self._call(
            "POST", "/session",
            {"capabilities": {"alwaysMatch": {
                "browserName": "chrome",
                "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": arguments},
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
                "unhandledPromptBehavior": "accept",
                "timeouts": {"pageLoad": 60000, "script": 60000, "implicit": 0},
            }}},
        )  # fmt: skip
        self._session = made["sessionId"]
        workdir.undo(self.close)

    def _start_driver(self, workdir, name, home):
        """Returns its port. Another program may take a free one first."""
        for attempt in range(3):
            port = workdir.free_port("127.0.0.1")
            self._driver = workdir.spawn(
                f"{name}-chromedriver",
                ["chromedriver", f"--port={port}", "--allowed-ips=127.0.0.1"],
                env={"HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home},
            )
            try:
                wait_for("chromedriver", listens("127.0.0.1", port), 15, self._driver)
                return port
            except RuntimeError:
                if attempt == 2:
                    raise

    def close(self):
        if self._session:
            session, self._session = self._session, None
            self._call("DELETE", f"/session/{session}")

    # The protocol.

    def _call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(
            self._base + path, data=data, method=method, headers={"Content-Type": "application/json"}
        )
        # No proxy, whatever the environment says.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=COMMAND_SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise WebDriverError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def _do(self, method, path, body=None):
        return self._call(method, f"/session/{self._session}{path}", body)

    # Pages.

    def open(self, target):
        url = target if target.startswith(("http", "data:")) else self.origin + target
        self._do("POST", "/url", {"url": url})

    def reload(self):
        self._do("POST", "/refresh", {})

    @property
    def url(self):
        return self._do("GET", "/url")

    @property
    def title(self):
        return self._do("GET", "/title")

    @property
    def source(self):
        return self._do("GET", "/source")

    @property
    def text(self):
        return self.script("return document.body ? document.body.innerText : ''") or ""

    def script(self, text, *arguments):
        return self._do("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def script_until_done(self, text, *arguments):
        """The same for a script that calls its last argument with the answer."""
        return self._do("POST", "/execute/async", {"script": text, "args": list(arguments)})

    def devtools(self, command, **parameters):
        """A command of Chromium's own protocol."""
        return self._do("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def screen(self, width, height=None, mobile=False):
        """Pretends that the screen has this size."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height or 900, deviceScaleFactor=2 if mobile else 1, mobile=mobile,
        )  # fmt: skip

    def colours(self, scheme):
        """Pretends that the visitor prefers `light` or `dark`."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.devtools("Emulation.setEmulatedMedia", features=[feature])

    def cookies(self):
        return {c["name"]: c["value"] for c in self._do("GET", "/cookie")}

    def screenshot(self, name):
        path = self.workdir.join(f"{name}.png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._do("GET", "/screenshot")))
        return path

    # Elements, by CSS selector.

    def find_all(self, selector):
        found = self._do("POST", "/elements", {"using": "css selector", "value": selector})
        return [element[ELEMENT] for element in found]

    def has(self, selector):
        return bool(self.find_all(selector))

    def find(self, selector, seconds=WAIT_SECONDS):
        """The first match; waits for it."""
        found = []

        def probe():
            found[:] = self.find_all(selector)
            return found

        self.wait(f"element {selector}", probe, seconds)
        return found[0]

    def click(self, selector):
        """Waits until the element can be clicked, then clicks it."""

        def probe():
            self._do("POST", f"/element/{self.find(selector)}/click", {})
            return True

        self.wait(f"click on {selector}", probe)

    def press(self, key):
        """A key on the keyboard, for what has the focus."""
        actions = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        self._do("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def type(self, selector, text, clear=True):
        element = self.find(selector)
        if clear:
            self._do("POST", f"/element/{element}/clear", {})
        self._do("POST", f"/element/{element}/value", {"text": text})

    def choose_file(self, selector, path):
        self._do("POST", f"/element/{self.find(selector)}/value", {"text": path})

    def submit(self, selector):
        """Clicks a button that leads to another page, and waits for that page."""
        self.script("window.__leaving = true")
        self.click(selector)
        self.wait(
            f"page after {selector}",
            lambda: self.script("return !window.__leaving && document.readyState === 'complete'"),
        )

    def wait(self, what, probe, seconds=WAIT_SECONDS):
        until = time.monotonic() + seconds
        error = None
        while time.monotonic() < until:
            try:
                if probe():
                    return
                error = None
            except WebDriverError as caught:
                error = caught
            time.sleep(0.1)
        raise WebDriverError(f"{what}: not after {seconds} s at {self.url} ({error or 'no error'})")

    def wait_text(self, text, seconds=WAIT_SECONDS):
        self.wait(f"text {text!r}", lambda: text in self.text, seconds)

    def settle(self, quiet_seconds=0.5, seconds=WAIT_SECONDS):
        """Waits until the page is complete and its network has been quiet for a while."""
        until = time.monotonic() + seconds
        quiet_since = time.monotonic()
        while time.monotonic() < until:
            if self._drain_log() or self.script("return document.readyState") != "complete":
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since >= quiet_seconds:
                return
            time.sleep(0.1)

    # What the browser saw.

    def _drain_log(self):
        entries = self._do("POST", "/se/log", {"type": "performance"})
        events = [json.loads(entry["message"])["message"] for entry in entries]
        events = [e for e in events if e["method"].startswith("Network.")]
        self._log.extend(events)
        return len(events)

    def network(self):
        """All exchanges since the last call, in order."""
        self._drain_log()
        events, self._log = self._log, []
        sent, exchanges = {}, []
        for event in events:
            parameters = event["params"]
            key = parameters.get("requestId")
            if event["method"] == "Network.requestWillBeSent":
                sent[key] = parameters["request"]["url"]
                if "redirectResponse" in parameters:
                    exchanges.append(_exchange(parameters["redirectResponse"], parameters.get("type")))
            elif event["method"] == "Network.responseReceived":
                exchanges.append(_exchange(parameters["response"], parameters["type"]))
            elif event["method"] == "Network.loadingFailed" and not parameters.get("canceled"):
                url = sent.get(key, "?")
                exchanges.append(Exchange(url, 0, parameters["errorText"], parameters["type"], False, {}))
        return exchanges

    def requests(self):
        """All addresses asked for since the last call, each with what asked: parser, script, ..."""
        self._drain_log()
        events, self._log = self._log, []
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [(it["request"]["url"], it["initiator"]["type"]) for it in sent]

    def console_errors(self):
        """Severe console messages since the last call."""
        entries = self._do("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def failures(self, expected=()):
        """Exchanges with our origin that failed, and console errors, since the last call.

        `expected` are parts of URLs that are known to fail.
        """
        bad = [
            repr(e)
            for e in self.network()
            if e.url.startswith(self.origin)
            and (e.status == 0 or e.status >= 400)
            and not any(part in e.url for part in expected)
        ]
        bad += [
            message[:300]
            for message in self.console_errors()
            if self.origin in message and not any(part in message for part in expected)
        ]
        return bad


def _exchange(response, kind):
    from_cache = response.get("fromDiskCache", False) or response.get("fromPrefetchCache", False)
    fields = {name.lower(): value for name, value in response.get("headers", {}).items()}
    return Exchange(response["url"], response["status"], response["statusText"], kind, from_cache, fields)
