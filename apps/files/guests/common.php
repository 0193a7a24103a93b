<?php
/**
 * What the applications of this folder share: a small site with items, comments, accounts, a cart and a poll.
 *
 * An application says how its session begins, where its tokens are and how they are checked, as the real one does
 * that its comment names. A site is DIR/common.php and DIR/NAME/index.php; DIR/data/NAME has what it keeps. There,
 * `runs` has a line for each run of PHP, and `secrets` each session and token that belongs to one visitor.
 */

error_reporting(E_ALL);
ini_set('display_errors', '0');

const WORDS = ['en' => 'Welcome', 'de' => 'Willkommen', 'fr' => 'Bienvenue'];
const RATES = ['USD' => 1.0, 'EUR' => 0.9, 'GBP' => 0.8];
const PASSWORDS = ['alice' => 'wonderland', 'bob' => 'builder'];
const ITEMS = [1 => 'Anvil', 2 => 'Basket', 3 => 'Candle', 4 => 'Drum', 5 => 'Easel', 6 => 'Funnel'];
const TEXT = '<p>It is made by hand, from wood of the region, and leaves the workshop after three days at most.</p>';

abstract class Application
{
    protected PDO $db;
    protected string $data;
    // What the visitor's session holds.
    protected array $session = [];
    // Of a session of the application's own.
    private string $cookie = '';
    protected string $id = '';
    private TableSessions $sessions;
    protected string $field = 'token';
    protected string $query = 'q';
    // Writes that need no token.
    protected array $free = ['search'];
    // Which parts it has.
    protected array $has = ['comment', 'contact', 'register', 'login', 'search'];
    // How language and currency are chosen: by a link, a form, both or not at all.
    protected array $language = ['get'];
    protected array $currency = [];

    private const TABLES = [
        'sessions (id VARCHAR(100) PRIMARY KEY, state TEXT)',
        'comments (item VARCHAR(100), text TEXT)',
        'messages (text TEXT)',
        'users (name VARCHAR(100) PRIMARY KEY, password VARCHAR(100))',
        'votes (choice VARCHAR(100))',
        'forms (id VARCHAR(100) PRIMARY KEY, form VARCHAR(100))',
    ];

    // Begins the session and sends its cookies.
    abstract protected function begin(): void;

    public function __construct()
    {
        $folder = dirname($_SERVER['SCRIPT_FILENAME']);
        $this->data = dirname($folder) . '/data/' . basename($folder);
        $this->db = $this->database();
        if (!is_file("$this->data/is-made")) {
            foreach (self::TABLES as $table) {
                $this->db->exec("CREATE TABLE IF NOT EXISTS $table");
            }
            touch("$this->data/is-made");
        }
        $this->note('runs', $_SERVER['REQUEST_METHOD'] . ' ' . $_SERVER['REQUEST_URI']);
        // As long as a page of a shop takes.
        usleep((int) @file_get_contents("$this->data/delay"));
    }

    // MariaDB, where the site was given one; otherwise SQLite.
    private function database(): PDO
    {
        if (is_file("$this->data/mariadb.json")) {
            $given = json_decode(file_get_contents("$this->data/mariadb.json"));
            return new PDO("mysql:unix_socket=$given->socket;dbname=$given->name;charset=utf8mb4", $given->user, $given->password);
        }
        $db = new PDO("sqlite:$this->data/site.sqlite", null, null, [PDO::ATTR_TIMEOUT => 10]);
        $db->exec('PRAGMA synchronous = OFF');
        if (!is_file("$this->data/is-made")) {
            $db->exec('PRAGMA journal_mode = WAL');
        }
        return $db;
    }

    public function run(): void
    {
        $this->begin();
        [$page, $id] = $this->route();
        if ($this->isWrite($page)) {
            $is_right = in_array($page, $this->free) || $this->isRight($page);
            $is_right ? $this->write($page, $id) : $this->refuse();
        } else {
            $this->show($page, $id);
        }
        $this->end();
    }

    protected function isWrite(string $page): bool
    {
        return $_SERVER['REQUEST_METHOD'] === 'POST' || in_array($page, ['language', 'currency', 'add', 'logout']);
    }

    // Where a page is, and which page an address is for.
    protected function address(string $page, int|string $id = ''): string
    {
        return "/index.php?page=$page" . ($id === '' ? '' : "&id=$id");
    }

    protected function route(): array
    {
        return [(string) ($_GET['page'] ?? 'front'), (string) ($_GET['id'] ?? '')];
    }

    protected function token(): string
    {
        return $this->session['token'] ??= bin2hex(random_bytes(16));
    }

    protected function hidden(string $form): string
    {
        return input($this->field, $this->secret($this->token()));
    }

    protected function isRight(string $form): bool
    {
        $sent = $_POST[$this->field] ?? $_GET[$this->field] ?? $_SERVER['HTTP_X_CSRF_TOKEN'] ?? '';
        return is_string($sent) && isset($this->session['token']) && hash_equals($this->session['token'], $sent);
    }

    // The word of the picture, which is good for one form.
    protected function isWord(): bool
    {
        $word = $this->session['captcha'] ?? '';
        unset($this->session['captcha']);
        return $word !== '' && $word === ($_POST['captcha'] ?? '');
    }

    // What the head and the foot of a page have besides.
    protected function head(): string
    {
        return '';
    }

    protected function foot(): string
    {
        return '';
    }

    // A new name for a session that is worth something.
    protected function anew(): void
    {
        if ($this->cookie) {
            $this->sessions->destroy($this->id);
            $this->giveOwn();
        } elseif (session_status() === PHP_SESSION_ACTIVE) {
            session_regenerate_id(true);
            $this->secret(session_id());
        }
    }

    protected function end(): void
    {
        if ($this->cookie) {
            $this->sessions->write($this->id, json_encode($this->session));
        } elseif (session_status() === PHP_SESSION_ACTIVE) {
            $_SESSION = $this->session;
            session_write_close();
        }
    }

    // PHP's own session: in files, or where its handler keeps it.
    protected function phpSession(string $name, string $limiter, array $options = [], ?SessionHandlerInterface $handler = null): void
    {
        if ($handler !== null) {
            session_set_save_handler($handler, true);
        }
        session_cache_limiter($limiter);
        session_start(['name' => $name, 'save_path' => "$this->data/sessions", 'gc_probability' => 0, 'use_strict_mode' => 1] + $options);
        $this->secret(session_id());
        $this->session = $_SESSION;
    }

    // A session of the application's own in a table, whose cookie every answer to a visitor without one gives.
    protected function ownSession(string $cookie): void
    {
        $this->cookie = $cookie;
        $this->sessions = new TableSessions($this->db);
        $this->id = (string) ($_COOKIE[$cookie] ?? '');
        $this->sessions->validateId($this->id) ? $this->secret($this->id) : $this->giveOwn();
        $this->session = json_decode($this->sessions->read($this->id), true) ?: [];
    }

    private function giveOwn(): void
    {
        $this->id = $this->secret(bin2hex(random_bytes(16)));
        setcookie($this->cookie, $this->id, ['path' => '/', 'httponly' => true]);
    }

    protected function secret(string $value): string
    {
        $this->note('secrets', $value);
        return $value;
    }

    protected function note(string $file, string $line): void
    {
        file_put_contents("$this->data/$file", "$line\n", FILE_APPEND | LOCK_EX);
    }

    protected function refuse(): void
    {
        http_response_code(403);
        echo "<!doctype html>\n<html><body><p id=\"refused\">The form is not valid any more.</p></body></html>\n";
    }

    protected function write(string $page, string $id): void
    {
        $back = $this->address('front');
        $sent = $this->sent();
        switch ($page) {
            case 'comment':
                $this->insert('comments', [$id, $sent['text'] ?? '']);
                $back = $this->address('item', $id);
                break;
            case 'contact':
                $text = ($sent['text'] ?? '') . (isset($_FILES['file']) ? " with {$_FILES['file']['size']} bytes" : '');
                $this->insert('messages', [$text]);
                $this->session['flash'] = "Sent: $text";
                $back = $this->address('contact');
                break;
            case 'register':
                $this->insert('users', [$sent['name'] ?? '', $sent['password'] ?? '']);
                $this->logIn($sent['name'] ?? '', 'Your account is there.');
                break;
            case 'login':
                $is_known = (PASSWORDS[$sent['name'] ?? ''] ?? null) === ($sent['password'] ?? '');
                if ($is_known) {
                    $this->logIn($sent['name'], 'You are in.');
                } else {
                    $this->session['flash'] = 'The password is wrong.';
                    $back = $this->address('login');
                }
                break;
            case 'logout':
                $this->session = [];
                $this->anew();
                break;
            case 'search':
                $back = $this->with($this->address('search'), $this->query, $sent['q'] ?? '');
                break;
            case 'language':
            case 'currency':
                $to = $sent['to'] ?? $_GET['to'] ?? '';
                if (isset(WORDS[$to]) || isset(RATES[$to])) {
                    $this->session[$page] = $to;
                }
                break;
            case 'add':
                $item = (int) ($sent['item'] ?? $id);
                $this->session['cart'][$item] = ($this->session['cart'][$item] ?? 0) + 1;
                $back = $this->address('cart');
                break;
            case 'vote':
                if (!isset($this->session['voted'])) {
                    $this->insert('votes', [$sent['choice'] ?? '']);
                    $this->session['voted'] = $sent['choice'] ?? '';
                }
                $back = $this->address('poll');
                break;
            default:
                $this->refuse();
                return;
        }
        $this->answer($back);
    }

    // What a form or a script sent.
    protected function sent(): array
    {
        $is_json = str_starts_with($_SERVER['CONTENT_TYPE'] ?? '', 'application/json');
        return $is_json ? (json_decode(file_get_contents('php://input'), true) ?: []) : $_POST;
    }

    protected function answer(string $back): void
    {
        if (str_starts_with($_SERVER['CONTENT_TYPE'] ?? '', 'application/json')) {
            header('Content-Type: application/json');
            echo json_encode(['success' => true]);
        } else {
            header("Location: $back", true, 302);
        }
    }

    protected function insert(string $table, array $values): void
    {
        $this->db->prepare("INSERT INTO $table VALUES (" . implode(',', array_fill(0, count($values), '?')) . ')')->execute($values);
    }

    protected function logIn(string $name, string $flash): void
    {
        $this->anew();
        unset($this->session['token']);
        $this->session['user'] = $name;
        $this->session['flash'] = $flash;
    }

    protected function show(string $page, string $id): void
    {
        if (!in_array($page, ['front', 'list', 'item', 'cart', 'poll', ...$this->has]) || ($page === 'item' && !isset(ITEMS[(int) $id]))) {
            http_response_code(404);
            echo 'Not found.';
            return;
        }
        if ($page === 'captcha') {
            // Stands for a picture of the word.
            header('Content-Type: text/plain');
            echo $this->session['captcha'] = (string) random_int(10000, 99999);
            return;
        }
        $flash = $this->session['flash'] ?? '';
        unset($this->session['flash']);
        $main = $this->main($page, $id);
        $language = $this->session['language'] ?? 'en';
        $user = $this->session['user'] ?? '';
        $nav = '';
        foreach (['front', 'list', ...array_diff($this->has, ['comment', 'add', 'captcha'])] as $to) {
            $nav .= a("to-$to", $this->address($to), $to);
        }
        echo "<!doctype html>\n<html lang=\"$language\"><head><title>$page $id</title>", $this->head(), "</head><body>\n",
            p('greeting', WORDS[$language]), p('user', $user ? "Hello $user" : 'Guest'), p('flash', $flash),
            in_array('add', $this->has) ? p('in-cart', 'Cart: ' . array_sum($this->session['cart'] ?? [])) : '',
            "<nav>$nav</nav>\n", $this->choices(), $user ? $this->exit() : '', "<main>$main</main>\n<footer>", $this->foot(), "</footer></body></html>\n";
    }

    // Log-out by a link with the token.
    protected function exit(): string
    {
        return a('logout', $this->with($this->address('logout'), $this->field, $this->secret($this->token())), 'Log out');
    }

    protected function with(string $address, string $name, string $value): string
    {
        return $address . (str_contains($address, '?') ? '&' : '?') . rawurlencode($name) . '=' . rawurlencode($value);
    }

    protected function choices(): string
    {
        $html = '';
        foreach (['language' => ['de', 'fr'], 'currency' => ['EUR']] as $what => $values) {
            foreach ($values as $to) {
                if (in_array('get', $this->$what)) {
                    $html .= a("$what-$to", $this->choice($this->with($this->address($what), 'to', $to)), $to);
                }
            }
            if (in_array('post', $this->$what)) {
                $html .= $this->form($what, $this->address($what), '<select name="to"><option>' . implode('</option><option>', $values) . '</option></select>');
            }
        }
        return $html;
    }

    // A language or currency that is in the address of a page: the page is shown, and the session remembers it.
    protected function remember(string $what): void
    {
        $to = $_GET[$what] ?? '';
        if (isset(WORDS[$to]) || isset(RATES[$to])) {
            $this->session[$what] = $to;
        }
    }

    // The link by which a language is chosen.
    protected function choice(string $address): string
    {
        return $address;
    }

    protected function form(string $name, string $action, string $inputs, string $more = 'method="post"'): string
    {
        $hidden = in_array($name, $this->free) ? '' : $this->hidden($name);
        return "<form id=\"$name\" action=\"" . htmlspecialchars($action) . "\" $more>$inputs$hidden<button>Go</button></form>\n";
    }

    protected function main(string $page, string $id): string
    {
        $links = '';
        foreach (ITEMS as $number => $name) {
            $links .= a("item-$number", $this->address('item', $number), $name);
        }
        switch ($page) {
            case 'item':
                $currency = $this->session['currency'] ?? 'USD';
                $html = '<h1>' . ITEMS[(int) $id] . '</h1>' . TEXT . p('price', sprintf('%s %.2f', $currency, 10 * $id * RATES[$currency]));
                $html .= in_array('add', $this->has) ? $this->adding($id) : '';
                $comments = $this->db->prepare('SELECT text FROM comments WHERE item = ?');
                $comments->execute([$id]);
                foreach ($comments->fetchAll(PDO::FETCH_COLUMN) as $text) {
                    $html .= '<blockquote>' . htmlspecialchars($text) . "</blockquote>\n";
                }
                return $html . (in_array('comment', $this->has) ? $this->form('comment', $this->address('comment', $id), '<input name="text">') : '');
            case 'contact':
                $picture = '<img src="' . htmlspecialchars($this->address('captcha')) . '"><input name="captcha">';
                return $this->form('contact', $this->address('contact'), '<input name="text">' . (in_array('captcha', $this->has) ? $picture : ''));
            case 'search':
                $found = array_filter(ITEMS, fn($name) => isset($_GET[$this->query]) && stripos($name, (string) $_GET[$this->query]) !== false);
                return $this->form('search', $this->address('search'), '<input name="q">') . p('found', implode(' ', $found));
            case 'register':
            case 'login':
                return $this->form($page, $this->address($page), '<input name="name"><input name="password" type="password">');
            case 'poll':
                $counts = $this->db->query('SELECT choice, COUNT(*) FROM votes GROUP BY choice ORDER BY choice')->fetchAll(PDO::FETCH_KEY_PAIR);
                $counts = array_map(fn($choice, $count) => "$choice $count", array_keys($counts), $counts);
                $voted = $this->session['voted'] ?? '';
                $form = $this->form('vote', $this->address('vote'), '<input name="choice" type="radio" value="A"><input name="choice" type="radio" value="B">');
                return $voted ? p('voted', "You chose $voted") . p('votes', implode(', ', $counts)) : $form;
            case 'cart':
                $cart = $this->session['cart'] ?? [];
                return p('cart', implode(', ', array_map(fn($item, $count) => "$count " . ITEMS[$item], array_keys($cart), $cart)));
        }
        return $links . TEXT;
    }

    protected function adding(string $id): string
    {
        return $this->form('add', $this->address('add'), input('item', $id));
    }
}

// Sessions in a table, as those of applications that run on several servers.
class TableSessions implements SessionHandlerInterface, SessionUpdateTimestampHandlerInterface
{
    public function __construct(private PDO $db)
    {
    }

    public function open(string $path, string $name): bool
    {
        return true;
    }

    public function close(): bool
    {
        return true;
    }

    public function read(string $id): string|false
    {
        return (string) $this->first($id);
    }

    public function write(string $id, string $data): bool
    {
        return $this->db->prepare('REPLACE INTO sessions VALUES (?, ?)')->execute([$id, $data]);
    }

    public function destroy(string $id): bool
    {
        return $this->db->prepare('DELETE FROM sessions WHERE id = ?')->execute([$id]);
    }

    public function gc(int $lifetime): int|false
    {
        return 0;
    }

    public function validateId(string $id): bool
    {
        return $this->first($id) !== false;
    }

    public function updateTimestamp(string $id, string $data): bool
    {
        return $this->write($id, $data);
    }

    private function first(string $id): string|false
    {
        $row = $this->db->prepare('SELECT state FROM sessions WHERE id = ?');
        $row->execute([$id]);
        return $row->fetchColumn();
    }
}

// Sessions in Redis, as PHP's extension for it keeps them: under PHPREDIS_SESSION:ID with a lifetime, and with a lock on each.
class RedisSessions implements SessionHandlerInterface, SessionUpdateTimestampHandlerInterface
{
    private const LIFETIME = 1440;
    private const LOCK_MILLISECONDS = 10000;
    private $stream;
    private string $locked = '';

    public function __construct(string $socket)
    {
        $this->stream = stream_socket_client("unix://$socket");
    }

    public function open(string $path, string $name): bool
    {
        return true;
    }

    public function close(): bool
    {
        if ($this->locked !== '') {
            $this->ask('DEL', "LOCK:$this->locked");
            $this->locked = '';
        }
        return true;
    }

    public function read(string $id): string|false
    {
        while ($this->ask('SET', "LOCK:$id", '1', 'NX', 'PX', (string) self::LOCK_MILLISECONDS) === null) {
            usleep(2000);
        }
        $this->locked = $id;
        return $this->ask('GET', "PHPREDIS_SESSION:$id") ?? '';
    }

    public function write(string $id, string $data): bool
    {
        return $this->ask('SETEX', "PHPREDIS_SESSION:$id", (string) self::LIFETIME, $data) === 'OK';
    }

    public function destroy(string $id): bool
    {
        $this->ask('DEL', "PHPREDIS_SESSION:$id");
        return true;
    }

    public function gc(int $lifetime): int|false
    {
        return 0;
    }

    public function validateId(string $id): bool
    {
        return $this->ask('EXISTS', "PHPREDIS_SESSION:$id") === '1';
    }

    public function updateTimestamp(string $id, string $data): bool
    {
        return $this->write($id, $data);
    }

    // Sends a command, and reads its answer: a word, a number or a text; null where there is none.
    private function ask(string ...$words): ?string
    {
        $command = '*' . count($words) . "\r\n";
        foreach ($words as $word) {
            $command .= '$' . strlen($word) . "\r\n$word\r\n";
        }
        fwrite($this->stream, $command);
        $line = rtrim((string) fgets($this->stream));
        $rest = substr($line, 1);
        return match ($line[0] ?? '-') {
            '+', ':' => $rest,
            '$' => (int) $rest < 0 ? null : substr((string) stream_get_contents($this->stream, (int) $rest + 2), 0, -2),
            default => throw new RuntimeException("Redis: $line"),
        };
    }
}

function p(string $id, string $text): string
{
    return "<p id=\"$id\">" . htmlspecialchars($text) . "</p>\n";
}

function a(string $id, string $address, string $text): string
{
    return "<a id=\"$id\" href=\"" . htmlspecialchars($address) . "\">$text</a>\n";
}

function input(string $name, string $value): string
{
    return '<input type="hidden" name="' . htmlspecialchars($name) . '" value="' . htmlspecialchars($value) . '">';
}

function base64_of_address(string $bytes): string
{
    return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
}
