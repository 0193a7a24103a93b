"""Applications without a database (harness/application_base.py)."""

import os
import re

from .application_base import PASSWORD, Application, Source, installed, remove, words_of
from .web_forms import Visitor


class OfFiles(Application):
    """An application without a database: what it shows is in files of `content`."""

    content = "content"
    has_database = False

    def install(self, site):
        pass


class Kirby(OfFiles):
    source = Source("getkirby/starterkit")
    skip = r"/panel|/media/"


class GetSimple(OfFiles):
    source = Source("GetSimpleCMS/GetSimpleCMS")
    content = "data/pages"
    skip = r"/admin/"
    php_settings = "display_errors=0\n"

    def install(self, site):
        for name in ("data/users", "data/cache", "data/other", "data/pages", "backups", "data/other/logs"):
            site.mkdir(name)
        visitor = Visitor(site.plain, site.host)
        visitor.open("/admin/install.php")
        answer = visitor.post("/admin/setup.php", {
            "submitted": "1", "sitename": "A site", "siteurl": f"http://{site.host}/", "user": "admin", "email": "admin@example.test", "lang": "en_US",
        })  # fmt: skip
        installed(answer, "admin")
        with open(os.path.join(site.root, "data/pages/index.xml"), encoding="utf-8") as file:
            first = file.read()
        for number in range(1, 16):
            text = first
            for name, value in {"title": f"Title of page {number}", "url": f"page-{number}", "menu": f"Page {number}", "menuOrder": number + 1,
                                "content": f"&lt;p&gt;Words of page number {number}.&lt;/p&gt;"}.items():  # fmt: skip
                text = re.sub(rf"<{name}>.*?</{name}>", f"<{name}><![CDATA[{value}]]></{name}>", text, flags=re.DOTALL)
            site.write(f"data/pages/page-{number}.xml", text)
        remove(site, *(f"admin/{name}.php" for name in ("install", "setup", "update")))


class CmsimpleXh(OfFiles):
    """All its pages are in one file, by which a change of one ends them all."""

    source = Source("cmsimple-xh/cmsimple-xh")
    skip = r"login|mailform|sitemap|search|print"


class PluXml(OfFiles):
    source = Source("pluxml/PluXml")
    content = "data/articles"
    skip = r"/core/|feed\.php|sitemap"

    def install(self, site):
        Visitor(site.plain, site.host).submit("/install.php", "login", more={
            "default_lang": "en", "data": "1", "name": "Ada Admin", "login": "admin", "password1": PASSWORD, "password2": PASSWORD,
            "email": "admin@example.test", "timezone": "UTC", "install": "Install",
        })  # fmt: skip
        # Without comments: their form has a question that is drawn each time.
        with open(os.path.join(site.root, "data/configuration/parametres.xml"), encoding="utf-8") as file:
            site.write("data/configuration/parametres.xml", re.sub(r"(name=\"allow_com\">(?:<!\[CDATA\[)?)\d", r"\g<1>0", file.read()))
        first = os.listdir(os.path.join(site.root, "data/articles"))
        first = next(name for name in first if name.endswith(".xml"))
        with open(os.path.join(site.root, "data/articles", first), encoding="utf-8") as file:
            text = file.read()
        for number in range(2, 16):
            for name, value in {"title": f"Article {number}", "chapo": "", "content": f"<p>Words of article {number}.</p>"}.items():
                text = re.sub(rf"<{name}>.*?</{name}>", f"<{name}><![CDATA[{value}]]></{name}>", text, flags=re.DOTALL)
            site.write(f"data/articles/{number:04}.001.001.202602{number:02}1000.article-{number}.xml", text)
        remove(site, "install.php")


class DokuWiki(OfFiles):
    source = Source("dokuwiki/dokuwiki")
    content = "data/pages"
    normal = r"taskrunner\.php\?id=\w+&amp;\d+|taskrunner\.php\?id=\w+&\d+"
    skip = r"do=(?!$)|login|/lib/|idx=|rev=|media|tab_"

    def install(self, site):
        site.write("conf/local.php", "<?php\n$conf['title'] = 'A wiki';\n$conf['useacl'] = 0;\n$conf['updatecheck'] = 0;\n$conf['license'] = '';\n")
        remove(site, "install.php")
        for number in range(15):
            links = " ".join(f"[[page{(number + step) % 15}]]" for step in (1, 4, 6))
            site.write(f"data/pages/page{number}.txt", f"====== Title of page {number} ======\n\nWords of page number {number}.\n\n{links}\n")
        site.write("data/pages/start.txt", "====== A wiki ======\n\nWelcome to everybody.\n\n[[page0]] [[page5]] [[page10]]\n")

    def own(self, site):
        visitor = Visitor(site.subject, site.host)

        def edit(number):
            visitor.submit(f"/doku.php?id=page{number}&do=edit", "wikitext", wikitext=f"====== Title of page {number} ======\n\nOther words of {number}.\n", more={"do[save]": "1"})

        return [(f"page {number} is edited by the form", lambda number=number: edit(number)) for number in (3, 8, 11)]


class Bludit(OfFiles):
    source = Source("bludit/bludit")
    content = "bl-content/pages"
    skip = r"/admin|rss|feed"

    def install(self, site):
        page = Visitor(site.plain, site.host).post("/install.php?language=en", {"username": "admin", "password": PASSWORD, "timezone": "UTC", "language": "en", "install": "Install"})
        if not os.path.isdir(os.path.join(site.root, "bl-content/pages")):
            raise RuntimeError(f"{page.status} {words_of(page.text)[-500:]}")
