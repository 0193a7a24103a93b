"""Somebody who changes a WordPress site, in all the ways there are."""

import json
import os
import re
import subprocess

from . import wordpress
from .client import Client


class Editor:
    """Logged in as the administrator."""

    def __init__(self, site, subject, admin, made):
        self.site = site
        self.subject = subject
        self.admin = admin
        self.made = made
        self.written = set()
        self.browser = Client(subject.address, subject.port)
        wordpress.log_in(self.browser, admin)
        self.nonce = self.browser.get("/wp-admin/admin-ajax.php?action=rest-nonce").text.strip()

    def rest(self, method, path, **fields):
        self.written.add(f"/wp-json/wp/v2/{path}")
        answer = self.browser.request(
            method, f"/wp-json/wp/v2/{path}", body=json.dumps(fields).encode(),
            fields={"Content-Type": "application/json", "X-WP-Nonce": self.nonce},
        )  # fmt: skip
        if answer.status not in (200, 201):
            raise RuntimeError(f"{method} {path} answers {answer.status}: {answer.text[:300]}")
        return json.loads(answer.text)

    def upload(self, name, content):
        fields = {
            "Content-Type": "image/png", "Content-Disposition": f'attachment; filename="{name}"', "X-WP-Nonce": self.nonce,
        }  # fmt: skip
        answer = self.browser.request("POST", "/wp-json/wp/v2/media", body=content, fields=fields)
        if answer.status != 201:
            raise RuntimeError(f"an upload answers {answer.status}: {answer.text[:300]}")
        return json.loads(answer.text)

    def form(self, page, target, pattern, **fields):
        """Sends a form of wp-admin, with the token that `pattern` finds on its page."""
        found = re.search(pattern, self.browser.get(page).text)
        if not found:
            raise RuntimeError(f"{page} has no {pattern}")
        [(name, value)] = found.groupdict().items()
        answer = self.browser.post(target, form={name: value, **fields})
        if answer.status not in (200, 302):
            raise RuntimeError(f"{target} answers {answer.status}: {answer.text[:300]}")
        return answer

    def php(self, code, **given):
        """Runs code in a script of the command line."""
        return evaluate(self.site, code, given, user=self.admin.login)

    def comment(self, post, text):
        answer = Client(self.subject.address, self.subject.port).post(
            "/wp-comments-post.php",
            form={"comment": text, "author": "Vera", "email": "vera@example.test", "comment_post_ID": str(post)},
        )  # fmt: skip
        if answer.status != 302:
            raise RuntimeError(f"a comment answers {answer.status}: {answer.text[:300]}")

    def post(self, number):
        return self.made["posts"][f"article-{number}"]

    def visit(self, target, form=None):
        """As somebody without an account."""
        visitor = Client(self.subject.address, self.subject.port)
        return visitor.get(target) if form is None else visitor.post(target, form=form)

    def deploy(self, path, text):
        """Puts a file of the site there, as `cp` does; without a text it is removed."""
        path = self.site.workdir.join(path)
        if text is None:
            os.unlink(path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def deploy_by_renaming(self, path, text):
        """The same, as rsync and git do."""
        self.deploy(f"{path}.new", text)
        os.rename(self.site.workdir.join(f"{path}.new"), self.site.workdir.join(path))

    def file(self, path):
        with open(self.site.workdir.join(path), encoding="utf-8") as file:
            return file.read()


def evaluate(site, code, given=None, user=None):
    """In a script of the command line; or, where the site has a door (files/editor_door.php), within its pool."""
    if site.door:
        return site.door({"user": user, "code": code, "given": given or {}})
    with open(os.path.join(wordpress.FILES, "wordpress_eval.php"), encoding="utf-8") as file:
        script = site.workdir.write("eval.php", file.read())
    task = {"host": site.workdir.address, "user": user, "code": code, "given": given or {}}
    done = subprocess.run(
        ["setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups", "php", script],
        input=json.dumps(task), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode != 0 or done.stderr:
        raise RuntimeError(f"{code[:80]}: {done.stderr or done.stdout}")
    return json.loads(done.stdout.splitlines()[-1])["returned"]


def code_of(name):
    with open(os.path.join(wordpress.FILES, name), encoding="utf-8") as file:
        return file.read().removeprefix("<?php")
