"""Forms of a page, read and sent as a browser does."""

import html.parser
import urllib.parse

from .client import Client, path_of

MAX_REDIRECTS = 4


class Forms(html.parser.HTMLParser):
    """Each form: its action, and its fields with what stands in them."""

    def __init__(self, text):
        super().__init__()
        self.forms = []
        self._select = self._area = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        name = attrs.get("name")
        if tag == "form":
            self.forms.append({"action": attrs.get("action", ""), "fields": {}})
        if not self.forms:
            return
        fields = self.forms[-1]["fields"]
        kind = attrs.get("type", "text").lower()
        if tag == "input" and name and kind not in ("submit", "button", "image", "file"):
            if kind not in ("checkbox", "radio") or "checked" in attrs:
                fields[name] = attrs.get("value", "on" if kind == "checkbox" else "") or ""
        elif tag == "select" and name:
            self._select = name
        elif tag == "option" and self._select and ("selected" in attrs or self._select not in fields):
            fields[self._select] = attrs.get("value", "") or ""
        elif tag == "textarea" and name:
            self._area = name
            fields[name] = ""

    def handle_endtag(self, tag):
        if tag == "select":
            self._select = None
        elif tag == "textarea":
            self._area = None

    def handle_data(self, data):
        if self._area:
            self.forms[-1]["fields"][self._area] += data


class Visitor:
    """Somebody with a browser at one site. `host` is what the site is called, whichever server is asked."""

    def __init__(self, subject, host):
        self.url = f"http://{host}"
        self.client = Client(subject.address, subject.port, fields={"Host": host})
        self.at = "/"

    def open(self, target):
        return self._follow(self.client.get(target), target)

    def post(self, target, form):
        fields = {"Origin": self.url, "Referer": self.url + self.at, "Sec-Fetch-Site": "same-origin"}
        return self._follow(self.client.post(target, form=form, fields=fields), target)

    def submit(self, target, needed, **given):
        """Opens a page, fills the form that has a field `needed`, and sends it. Names that are no Python words come in `more`."""
        page = self.open(target)
        form = next((form for form in Forms(page.text).forms if needed in form["fields"]), None)
        if form is None:
            raise RuntimeError(f"{target} answers {page.status} without a form with {needed}: {page.text[:300]}")
        action = path_of(urllib.parse.urljoin(self.url + self.at, form["action"])) if form["action"] else self.at
        values = {**form["fields"], **given.pop("more", {}), **given}
        return self.post(action, {name: value for name, value in values.items() if value is not None})

    def _follow(self, answer, target):
        for _ in range(MAX_REDIRECTS):
            if answer.status not in (301, 302, 303):
                break
            target = path_of(urllib.parse.urljoin(self.url + target, answer.field("location")))
            answer = self.client.get(target)
        self.at = target
        return answer
