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

from harness import wordpress
from harness.client import Client, path_of
from harness.isolation import STALE_SECONDS, Ledger, Visitor, Watch

CROWD = 8
CROWD_PAUSE_SECONDS = 0.01  # bounds the load: at most 800 requests/s
USER_PAUSE_SECONDS = 0.05
HEAD_SHARE = 0.05
MIN_HIT_SHARE = 0.6
# In fewer answers most are the first of their page: the machine has too much else to do for a share to say something.
MIN_FOR_SHARE = 600
NEWEST_POSTS_KEPT = 4
# Beyond the lifetime, half of the changes are out: what PHP takes for a refresh, at least, and in times of
# what half of its pages take in this run.
REFRESH_SECONDS = 2.0
REFRESH_PAGES = 6
# Addresses of which each view or each burst asks a new copy, so that all
# kinds of visitors meet in one collapsed fetch.
BURST_TARGETS = ("/first/?burst={}", "/?visit=private&burst={}", "/?visit=shop&burst={}", "/protected/?burst={}")
BURST_PAUSE_SECONDS = 1.0
FRONT = "/"
MISSING = "/no-such-page/"
OLD_ADDRESS = "/first"  # WordPress leads on to /first/
STATUSES = {MISSING: (404,), OLD_ADDRESS: (301,)}


class Stage:
    """The running site, its people, and what they all look at."""

    def __init__(self, options, site, subject, ledger, users):
        self.options = options
        self.site = site
        self.subject = subject
        self.ledger = ledger
        self.users = users
        self.deadline = time.monotonic() + options.seconds
        # A scenario that looks for something ends when it has found it.
        self.is_enough = lambda: False
        self.errors = []
        self.counts = {"comments": 0, "posts": 0, "own writes shown at once": 0, "own writes late": 0, "bursts": 0}
        self.new_posts = []
        self.lock = threading.Lock()

    def client(self, cookies=None):
        return Client(self.subject.address, self.subject.port, cookies)

    @property
    def is_over(self):
        return time.monotonic() >= self.deadline or self.is_enough()

    def post_targets(self):
        with self.lock:
            return ["/first/", "/second/", "/third/", *self.new_posts]

    def changing_targets(self):
        return [FRONT, *self.post_targets()]

    def targets(self):
        return [
            FRONT, FRONT, FRONT, *self.post_targets(), "/feed/", "/comments/feed/", "/?s=first",
            "/author/arthur/", "/wp-json/wp/v2/posts", "/wp-json/wp/v2/comments", "/protected/",
            MISSING, OLD_ADDRESS, "/?visit=shop", "/?visit=private", "/hello-world/?utm_source=x",
        ]  # fmt: skip

    def look(self, visitor, target, crowd=False, method="GET"):
        """One view of an address by a visitor, judged."""
        response = visitor.client.request(method, target)
        # Without a nonce the REST interface treats everybody as anonymous.
        expected_user = 0 if target.startswith("/wp-json/") else None
        statuses = STATUSES.get(target, (200,))
        self.ledger.judge(visitor, response, expected_user, statuses, crowd)
        own = f"<!-- visitor:{visitor.client.cookies.get('visitor', '')} -->"
        if target.startswith("/?visit=private") and method == "GET" and own not in response.text:
            self.ledger.violate("private page of another person", visitor, response, response.text[:80])
        # A session would make this visitor a person with a cookie of their own.
        visitor.client.cookies.pop("shop_session", None)
        return response

    def watch(self, text, target, written):
        self.ledger.watch(Watch(text, target, written, self.options.ttl, STALE_SECONDS))

    def count(self, what):
        with self.lock:
            self.counts[what] += 1


def run(options, report):
    with wordpress.served(options, report, "isolation") as (site, subject):
        stage = prepare(options, site, subject)
        act(stage)
        judge(stage, report)


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
    logged_in = []
    for user in stage.users.values():
        visitor = Visitor(user.login, stage.client(cookie_of_a_visitor()), user.id)
        for response in wordpress.log_in(visitor.client, user):
            stage.ledger.judge(visitor, response, expected_user=0, statuses=(200, 302))
        for name, value in visitor.client.cookies.items():
            if name.startswith("wordpress_") and name != "wordpress_test_cookie":
                stage.ledger.add_secret(value, user.login)
        logged_in.append(visitor)
        people += [(user_reads, visitor), (user_writes, visitor)]
    cora, silas, petra = (Visitor(name, stage.client(cookie_of_a_visitor())) for name in ("cora", "silas", "petra"))
    people += [(commenter_writes, cora), (commenter_writes, silas), (password_reader, petra)]
    crowd = []
    for number in range(CROWD):
        cookies = cookie_of_a_visitor()
        if number % 2:
            cookies["_ga"] = f"GA1.1.{random.getrandbits(40)}"
        client = stage.client(cookies)
        client.accepts_gzip = number % 4 >= 2
        crowd.append(Visitor(f"crowd {number}", client))
    people += [(crowd_reads, visitor) for visitor in crowd]
    people.append((bursts, [*crowd, *logged_in, cora, petra]))
    people.append((newest_stay_asked_for, None))
    stage.deadline = time.monotonic() + stage.options.seconds
    threads = [threading.Thread(target=guarded, args=(stage, *who), daemon=True) for who in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last_changes(stage)


def last_changes(stage):
    """What was written in the last moments must come out as well."""
    visitor = Visitor("watcher", stage.client())
    until = time.monotonic() + stage.options.ttl + STALE_SECONDS + stage.ledger.slowest
    while time.monotonic() < until:
        targets = {watch.target for watch in stage.ledger.unseen(stage.changing_targets())}
        if not targets:
            return
        for target in targets:
            stage.look(visitor, target, crowd=True)
        time.sleep(0.2)


def cookie_of_a_visitor():
    """A cookie that no cache knows, as analytics scripts set; echoed by /?visit=private."""
    return {"visitor": f"{random.getrandbits(64):016x}"}


def guarded(stage, part, visitor):
    """Runs one part; a client error is an error of the run, not the end of it."""
    while not stage.is_over:
        try:
            part(stage, visitor)
            return
        except Exception as error:
            who = getattr(visitor, "name", "")
            stage.errors.append(f"{part.__name__} {who}: {type(error).__name__}: {error}")
            time.sleep(0.5)


def crowd_reads(stage, visitor):
    while not stage.is_over:
        method = "HEAD" if random.random() < HEAD_SHARE else "GET"
        stage.look(visitor, random.choice(stage.targets()), crowd=True, method=method)
        time.sleep(CROWD_PAUSE_SECONDS)


def user_reads(stage, visitor):
    admin_pages = ["/wp-admin/", "/wp-admin/edit.php", "/wp-admin/profile.php",
                   "/wp-admin/edit-comments.php", "/wp-admin/upload.php"]  # fmt: skip
    while not stage.is_over:
        stage.look(visitor, random.choice(stage.targets() + admin_pages))
        time.sleep(USER_PAUSE_SECONDS)


def bursts(stage, visitors):
    """All kinds of visitors ask for a page that nobody has seen yet, at the same moment.

    This stages what is rare otherwise: a logged-in leader with anonymous
    followers, and the other way round.
    """
    number = 0
    while not stage.is_over:
        number += 1
        target = BURST_TARGETS[number % len(BURST_TARGETS)].format(number)
        order = random.sample(visitors, len(visitors))
        together = threading.Barrier(len(order))

        def ask(visitor):
            together.wait()
            stage.look(visitor, target, crowd=visitor.name.startswith("crowd"))

        threads = [threading.Thread(target=guarded_once, args=(stage, ask, v), daemon=True) for v in order]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stage.count("bursts")
        time.sleep(BURST_PAUSE_SECONDS)


def guarded_once(stage, part, visitor):
    try:
        part(visitor)
    except Exception as error:
        stage.errors.append(f"burst {visitor.name}: {type(error).__name__}: {error}")


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
    stage.watch(text, target, written)
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
    stage.watch(title, FRONT, answer.ended)
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


def newest_stay_asked_for(stage, _):
    """Keeps every page with changes asked for, however the crowd's dice fall."""
    visitor = Visitor("watcher", stage.client())
    while not stage.is_over:
        for target in stage.changing_targets():
            stage.look(visitor, target, crowd=True)
        time.sleep(0.1)


def judge(stage, report):
    ledger = stage.ledger
    report.note(f"{ledger.responses} responses in {stage.options.seconds} s; {stage.counts}")
    for (who, status, word), number in sorted(ledger.by_kind.items(), key=str):
        report.note(f"  {who:22} {status} {word:12} {number}")
    if ledger.shown_for_trouble:
        report.note(f"{ledger.shown_for_trouble} stale pages stood in for a PHP that did not keep up")
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
    unseen = [watch.text for watch in ledger.unseen(stage.changing_targets())]
    report.check("every change reached anonymous visitors", ledger.delays and not unseen, unseen[:3])
    median = sorted(ledger.delays)[len(ledger.delays) // 2] if ledger.delays else 0.0
    made = sorted(ledger.made_seconds)
    page_seconds = made[len(made) // 2] if made else 0.0
    most = stage.options.ttl + max(REFRESH_SECONDS, REFRESH_PAGES * page_seconds)
    report.check(f"half of the changes were out after {most:g} s", median <= most, f"{median:.2f} s")
    anonymous = [(word, n) for (who, _, word), n in ledger.by_kind.items() if who == "anonymous"]
    hits = sum(n for word, n in anonymous if is_hit_word(word))
    answers = sum(n for _, n in anonymous)
    share = hits / max(1, answers)
    report.check(
        f"anonymous visitors were answered from memory ({share:.0%} of {answers})",
        share >= MIN_HIT_SHARE or answers < MIN_FOR_SHARE, f"{share:.2f}",
    )


def is_hit_word(word):
    return word == "hit" or word.split(" ")[0] in ("HIT", "STALE", "UPDATING", "REVALIDATED")
