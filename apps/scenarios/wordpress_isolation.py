"""Nobody ever sees somebody else's page (WordPress, Debian's package).

An editor and an author, logged in, and three visitors with telling cookies
(a commenter whose browser remembers name and e-mail address, one whose does
not, a reader with the password of a protected post) read the same addresses
as an anonymous crowd, while posts and comments are written through
WordPress's own forms and REST interface. Every response of everybody goes
through `harness.isolation.Ledger`.
"""

import json
import random
import re
import threading
import time

from harness import subject as subjects
from harness import wordpress
from harness.client import Client, path_of
from harness.isolation import Ledger, Visitor, Watch
from harness.workdir import Workdir, children_of

NAME = "wordpress_isolation"
CROWD = 8
CROWD_PAUSE_SECONDS = 0.01  # bounds the load: at most 800 requests/s
USER_PAUSE_SECONDS = 0.05
LEAST_HIT_SHARE = 0.6
NEWEST_POSTS_KEPT = 4
# Beyond the lifetime: the time PHP takes for the refresh on a busy machine.
SLACK_SECONDS = 2.0
FRONT = "/"


class Stage:
    """The running site, its people, and what they all look at."""

    def __init__(self, options, site, subject, ledger, users):
        self.options = options
        self.site = site
        self.subject = subject
        self.ledger = ledger
        self.users = users
        self.limit = options.ttl + SLACK_SECONDS
        self.deadline = time.monotonic() + options.seconds
        self.errors = []
        self.counts = {"comments": 0, "posts": 0, "own writes shown at once": 0, "own writes late": 0}
        self.new_posts = []
        self.lock = threading.Lock()

    def client(self, cookies=None):
        return Client(self.subject.address, self.subject.port, cookies)

    @property
    def is_over(self):
        return time.monotonic() >= self.deadline

    def post_targets(self):
        with self.lock:
            return ["/first/", "/second/", "/third/", *self.new_posts]

    def targets(self):
        return [
            FRONT, FRONT, FRONT, *self.post_targets(), "/feed/", "/comments/feed/", "/?s=first",
            "/author/arthur/", "/wp-json/wp/v2/posts", "/wp-json/wp/v2/comments", "/protected/",
            "/no-such-page/", "/?visit=shop", "/?visit=private", "/hello-world/?utm_source=x",
        ]  # fmt: skip

    def count(self, what):
        with self.lock:
            self.counts[what] += 1


def run(options, report):
    with Workdir("wordpress", keep=options.keep) as workdir:
        site = wordpress.Site(workdir)
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
        try:
            stage = prepare(options, site, subject)
            act(stage)
            judge(stage, report)
        except Exception:
            report.note(subject.logs())
            raise
        family = children_of(subject.process.pid)
        left = subject.stop()
        report.check("stopping the server leaves no process behind", not left, f"{left} of {family}")


def prepare(options, site, subject):
    admin = wordpress.User("root1", "Ada Admin", "administrator")
    editor = wordpress.User("edith", "Edith Editor", "editor")
    author = wordpress.User("arthur", "Arthur Author", "author")
    site.install(subject, admin)
    ledger = Ledger()
    protected = f"protected-{random.getrandbits(64):016x}"
    private = f"private-{random.getrandbits(64):016x}"
    posts = [
        {"title": slug.title(), "slug": slug, "author": "arthur", "content": f"<p>The {slug} post.</p>" * 20}
        for slug in ("first", "second", "third")
    ]
    posts.append({"title": "Protected", "slug": "protected", "author": "arthur",
                  "content": f"<p>{protected}</p>", "password": "sesame"})  # fmt: skip
    posts.append({"title": "Private", "slug": "private", "author": "edith",
                  "content": f"<p>{private}</p>", "status": "private"})  # fmt: skip
    site.seed([admin, editor, author], posts)
    ledger.add_secret(private, "edith")
    ledger.add_secret(protected, "petra", "arthur", "edith")
    for user in (editor, author):
        ledger.add_secret(user.token, user.login)
        # WordPress's lists show each of them the other's e-mail address and drafts.
        ledger.add_secret(user.email, "edith", "arthur")
        ledger.add_secret(f'Howdy, <span class="display-name">{user.name}', user.login)
    ledger.add_secret(admin.token)
    ledger.add_secret(admin.password)
    return Stage(options, site, subject, ledger, {"edith": editor, "arthur": author})


def act(stage):
    """Everybody at once until the deadline."""
    people = []
    for user in stage.users.values():
        visitor = Visitor(user.login, stage.client(), user.id)
        for response in wordpress.log_in(visitor.client, user):
            stage.ledger.judge(visitor, response, expected_user=0, statuses=(200, 302))
        for name, value in visitor.client.cookies.items():
            if name.startswith("wordpress_") and name != "wordpress_test_cookie":
                stage.ledger.add_secret(value, user.login)
        people += [(user_reads, visitor), (user_writes, visitor)]
    people += [
        (commenter_writes, Visitor("cora", stage.client())),
        (commenter_writes, Visitor("silas", stage.client())),
        (password_reader, Visitor("petra", stage.client())),
    ]
    for number in range(CROWD):
        cookies = {"visitor": f"{random.getrandbits(64):016x}"}
        if number % 2:
            cookies["_ga"] = f"GA1.1.{random.getrandbits(40)}"
        people.append((crowd_reads, Visitor(f"crowd {number}", stage.client(cookies))))
    people.append((writes_stay_seen, None))
    stage.deadline = time.monotonic() + stage.options.seconds
    threads = [threading.Thread(target=guarded, args=(stage, *who)) for who in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def guarded(stage, part, visitor):
    """Runs one part; a client error is an error of the run, not the end of it."""
    while not stage.is_over:
        try:
            part(stage, visitor)
            return
        except Exception as error:
            stage.errors.append(f"{part.__name__} {visitor and visitor.name}: {type(error).__name__}: {error}")
            time.sleep(0.5)


def crowd_reads(stage, visitor):
    own_cookie = f"<!-- visitor:{visitor.client.cookies['visitor']} -->"
    while not stage.is_over:
        target = random.choice(stage.targets())
        statuses = (404,) if target == "/no-such-page/" else (200,)
        response = visitor.client.get(target)
        stage.ledger.judge(visitor, response, statuses=statuses, crowd=True)
        if target == "/?visit=private" and own_cookie not in response.text:
            stage.ledger.violate("private page of another person", visitor, response, response.text[:80])
        # A session would make this visitor a person with a cookie of their own.
        visitor.client.cookies.pop("shop_session", None)
        time.sleep(CROWD_PAUSE_SECONDS)


def user_reads(stage, visitor):
    admin_pages = ["/wp-admin/", "/wp-admin/edit.php", "/wp-admin/profile.php",
                   "/wp-admin/edit-comments.php", "/wp-admin/upload.php"]  # fmt: skip
    while not stage.is_over:
        target = random.choice(stage.targets() + admin_pages)
        is_rest = target.startswith("/wp-json/")
        statuses = (404,) if target == "/no-such-page/" else (200,)
        response = visitor.client.get(target)
        # Without a nonce the REST interface treats everybody as anonymous.
        stage.ledger.judge(visitor, response, expected_user=0 if is_rest else None, statuses=statuses)
        time.sleep(USER_PAUSE_SECONDS)


def user_writes(stage, visitor):
    """Comments, drafts, posts, in turn; each must show at once to its author."""
    client, judge_it = visitor.client, stage.ledger.judge
    nonce = judge_it(visitor, client.get("/wp-admin/admin-ajax.php?action=rest-nonce")).text.strip()
    stage.ledger.add_secret(nonce, visitor.name)
    rest = {"X-WP-Nonce": nonce, "Content-Type": "application/json"}
    turn = 0
    while not stage.is_over:
        turn += 1
        write_comment(stage, visitor, random.choice(stage.post_targets()))
        if turn % 3 == 1:
            publish_post(stage, visitor, rest)
        if turn % 5 == 2:
            quick_draft(stage, visitor)
        page = client.get("/wp-json/wp/v2/posts?context=edit&status=any", {"X-WP-Nonce": nonce})
        # Authors may not edit others' posts: the list is then refused.
        judge_it(visitor, page, statuses=(200, 400, 401, 403))
        time.sleep(0.5)


def write_comment(stage, visitor, target, extra=None):
    client, ledger = visitor.client, stage.ledger
    page = ledger.judge(visitor, client.get(target))
    post_id = re.search(r"name='comment_post_ID' value='(\d+)'", page.text)
    if not post_id:
        ledger.violate("no comment form", visitor, page, "")
        return
    text = f"comment {random.getrandbits(64):016x} by {visitor.name}"
    answer = client.post(
        "/wp-comments-post.php",
        form={"comment": text, "comment_post_ID": post_id.group(1), "comment_parent": "0", **(extra or {})},
    )
    written = answer.ended
    ledger.judge(visitor, answer, statuses=(302,))
    if answer.status != 302:
        return
    stage.count("comments")
    ledger.watch(Watch(text, target, written, stage.limit))
    shown = ledger.judge(visitor, client.get(path_of(answer.field("location"))))
    own_write(stage, visitor, shown, text)


def own_write(stage, visitor, response, text):
    if text in response.text:
        stage.count("own writes shown at once")
    else:
        stage.count("own writes late")
        stage.ledger.violate("own write not shown at once", visitor, response, text)


def publish_post(stage, visitor, rest):
    client, ledger = visitor.client, stage.ledger
    title = f"Post {random.getrandbits(48):012x}"
    body = {"title": title, "content": f"<p>By {visitor.name}.</p>", "status": "publish"}
    answer = client.post("/wp-json/wp/v2/posts", body=json.dumps(body).encode(), fields=rest)
    ledger.judge(visitor, answer, statuses=(201,))
    if answer.status != 201:
        return
    stage.count("posts")
    ledger.watch(Watch(title, FRONT, answer.ended, stage.limit))
    own_write(stage, visitor, ledger.judge(visitor, client.get(FRONT)), title)
    target = path_of(json.loads(answer.text)["link"])
    with stage.lock:
        stage.new_posts = [*stage.new_posts, target][-NEWEST_POSTS_KEPT:]


def quick_draft(stage, visitor):
    """The form on the dashboard; a draft is the business of logged-in users only."""
    client, ledger = visitor.client, stage.ledger
    page = ledger.judge(visitor, client.get("/wp-admin/"))
    form = page.text[page.text.find('id="quick-press"') :]
    nonce = re.search(r'name="_wpnonce" value="([0-9a-f]{10})"', form)
    post_id = re.search(r'name="post_ID" value="(\d+)"', form)
    if not (nonce and post_id):
        ledger.violate("no quick draft form", visitor, page, "")
        return
    secret = f"draft {random.getrandbits(64):016x}"
    ledger.add_secret(secret, "edith", "arthur")
    answer = client.post(
        "/wp-admin/post.php",
        form={"action": "post-quickdraft-save", "post_title": secret, "content": secret,
              "post_ID": post_id.group(1), "_wpnonce": nonce.group(1), "post_type": "post"},
    )  # fmt: skip
    ledger.judge(visitor, answer, statuses=(200, 302))
    own_write(stage, visitor, ledger.judge(visitor, client.get("/wp-admin/edit.php?post_status=draft")), secret)
    preview = client.get(f"/?p={post_id.group(1)}&preview=true")
    own_write(stage, visitor, ledger.judge(visitor, preview), secret)


def commenter_writes(stage, visitor):
    """A visitor without account; cora lets the browser remember her, silas does not."""
    email = f"{visitor.name}-{random.getrandbits(48):012x}@example.test"
    # Editors and authors meet it in wp-admin's list of comments.
    stage.ledger.add_secret(email, visitor.name, "edith", "arthur")
    extra = {"author": visitor.name.title(), "email": email, "url": ""}
    if visitor.name == "cora":
        extra["wp-comment-cookies-consent"] = "yes"
    while not stage.is_over:
        write_comment(stage, visitor, random.choice(stage.post_targets()), extra)
        # Past the read-your-writes time, silas is one of the crowd again.
        until = time.monotonic() + random.choice((0.5, 1.5, stage.options.ttl + 4))
        while time.monotonic() < until and not stage.is_over:
            stage.ledger.judge(visitor, visitor.client.get(random.choice(stage.post_targets())))
            time.sleep(0.2)


def password_reader(stage, visitor):
    """Opens the protected post with its password and reads it again and again."""
    client, ledger = visitor.client, stage.ledger
    ledger.judge(visitor, client.get("/protected/"))
    answer = client.post("/wp-login.php?action=postpass", form={"post_password": "sesame", "Submit": "Enter"},
                         fields={"Referer": f"{stage.subject.url}/protected/"})  # fmt: skip
    ledger.judge(visitor, answer, statuses=(302,))
    while not stage.is_over:
        page = ledger.judge(visitor, client.get("/protected/"))
        if "protected-" not in page.text:
            ledger.violate("own page not shown", visitor, page, "the password form came back")
        time.sleep(0.3)


def writes_stay_seen(stage, _):
    """Keeps the front page asked for, however the crowd's dice fall."""
    visitor = Visitor("watcher", stage.client())
    while not stage.is_over:
        for target in [FRONT, *stage.post_targets()]:
            stage.ledger.judge(visitor, visitor.client.get(target), crowd=True)
        time.sleep(0.1)


def judge(stage, report):
    ledger = stage.ledger
    report.note(f"{ledger.responses} responses in {stage.options.seconds} s; {stage.counts}")
    for (who, status, word), number in sorted(ledger.by_kind.items(), key=str):
        report.note(f"  {who:22} {status} {word:12} {number}")
    if ledger.delays:
        delays = sorted(ledger.delays)
        report.note(
            f"a change reached anonymous after {delays[len(delays) // 2]:.2f} s (median), "
            f"{delays[-1]:.2f} s (longest), {len(delays)} changes"
        )
    for rule, number in sorted(ledger.violations.items()):
        report.note(f"violation: {rule}: {number}")
    for example in ledger.examples:
        report.note(example)
    for error in stage.errors[:5]:
        report.note(error)

    report.check("every client could go on", not stage.errors, f"{len(stage.errors)} errors")
    total = sum(ledger.violations.values())
    report.check("every response belonged to who asked for it", total == 0, f"{total} violations")
    logged_in = sum(n for (who, *_), n in ledger.by_kind.items() if who == "logged in")
    report.check("logged-in users were served", logged_in >= stage.options.seconds, logged_in)
    late = stage.counts["own writes late"]
    report.check(
        "writers saw their own writes at once",
        late == 0 and stage.counts["own writes shown at once"] > 0, f"{late} late",
    )  # fmt: skip
    unseen = ledger.unseen(time.monotonic(), {FRONT, *stage.post_targets()})
    report.check("every change reached anonymous visitors", ledger.delays and not unseen, unseen[:3])
    anonymous = [(word, n) for (who, _, word), n in ledger.by_kind.items() if who == "anonymous"]
    hits = sum(n for word, n in anonymous if is_hit_word(word))
    share = hits / max(1, sum(n for _, n in anonymous))
    report.check(
        f"anonymous visitors were answered from memory ({share:.0%})", share >= LEAST_HIT_SHARE, f"{share:.2f}"
    )


def is_hit_word(word):
    return word == "hit" or word.split(" ")[0] in ("HIT", "STALE", "UPDATING", "REVALIDATED")
