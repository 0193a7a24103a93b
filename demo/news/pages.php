<?php
// What the visitor sees. Everything that came from outside goes through h().

declare(strict_types=1);

final class Pages
{
    /** Nothing is ever older than this, even if a purge went wrong. */
    private const KEEP_SECONDS = 3600;

    private float $madeAt;

    /** @var list<string> what the page shows, in names that say when it has to be made anew */
    private array $names = [];

    /**
     * @param int  $started nanoseconds of hrtime() when the script began
     * @param bool $isKept  whether the server in front keeps a page until it changes, or for its own time
     */
    public function __construct(
        private int $started,
        private int $execution,
        private Mayfly\Mayfly $mayfly,
        private bool $isKept,
    ) {
        $this->madeAt = microtime(true);
    }

    /** The page shows these, and is kept until one of them changes. */
    private function reads(string ...$names): void
    {
        $this->names = [...$this->names, ...$names];
        $this->mayfly->reads(...$names)->keepFor(self::KEEP_SECONDS);
    }

    public function front(array $items): void
    {
        $this->reads('news');
        $list = '';
        foreach ($items as $item) {
            $this->reads("comments:{$item['id']}");
            $list .= '<article><h2><a href="/news/' . $item['id'] . '">' . h($item['title']) . '</a></h2>'
                . '<p>' . h($item['lead']) . '</p><p class="small">' . when($item['published'])
                . ' · ' . counted($item['comments'], 'comment') . '</p></article>';
        }
        $this->html('River News', $list);
    }

    public function item(array $item, array $comments): void
    {
        $this->reads("article:{$item['id']}", "comments:{$item['id']}");
        $list = '';
        foreach ($comments as $comment) {
            $list .= '<li><p>' . nl2br(h($comment['text'])) . '</p><p class="small">'
                . h($comment['author']) . ', ' . when($comment['written']) . '</p></li>';
        }
        $this->html(
            $item['title'],
            '<article><h1>' . h($item['title']) . '</h1><p class="small">' . when($item['published'])
            . '</p><p class="lead">' . h($item['lead']) . '</p>' . paragraphs($item['body']) . '</article>'
            . '<section id="comments"><h2>' . counted(count($comments), 'comment') . '</h2><ol>' . $list . '</ol>'
            . '<form method="post" action="/news/' . $item['id'] . '">'
            . '<label>Name <input name="author" maxlength="60" required autocomplete="name"></label>'
            . '<label class="website" aria-hidden="true">Leave this empty '
            . '<input name="website" tabindex="-1" autocomplete="off"></label>'
            . '<label>Comment <textarea name="text" rows="4" maxlength="2000" required></textarea></label>'
            . '<button>Add comment</button></form></section>'
        );
    }

    public function message(string $title, string $text): void
    {
        $this->html($title, '<article><h1>' . h($title) . '</h1><p>' . h($text)
            . '</p><p><a href="/">To the front page</a></p></article>');
    }

    /** RFC 4287. */
    public function feed(array $items): void
    {
        $this->reads('news');
        header('Content-Type: application/atom+xml; charset=utf-8');
        $site = 'http://' . ($_SERVER['HTTP_HOST'] ?? 'localhost');
        echo '<?xml version="1.0" encoding="utf-8"?>', "\n",
            '<feed xmlns="http://www.w3.org/2005/Atom"><title>River News</title><id>', h($site), '/</id>',
            '<link rel="self" href="', h($site), '/feed"/><author><name>River News</name></author>',
            '<updated>', gmdate('Y-m-d\TH:i:s\Z', (int) ($items[0]['published'] ?? 0)), '</updated>';
        foreach ($items as $item) {
            $link = h($site . '/news/' . $item['id']);
            echo '<entry><title>', h($item['title']), '</title><id>', $link, '</id><link href="', $link, '"/>',
                '<updated>', gmdate('Y-m-d\TH:i:s\Z', (int) $item['published']), '</updated>',
                '<summary>', h($item['lead']), '</summary></entry>';
        }
        echo '</feed>', "\n";
    }

    private function html(string $title, string $content): void
    {
        header('Content-Type: text/html; charset=utf-8');
        echo '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>', h($title), '</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="stylesheet" href="/style.css">',
            '<link rel="alternate" type="application/atom+xml" title="River News" href="/feed"></head>',
            '<body><header><a href="/">River News</a><a href="/feed">Feed</a></header><main>', $content,
            '</main>', $this->provenance(), '</body></html>', "\n";
    }

    /**
     * When and by which execution PHP made this page, and how long it is kept. The server says in the
     * field Server-Timing whether the copy at hand came from memory, and the
     * script reads it for the very response it arrived in. Without the script
     * the time tells: a page from memory is older than your watch.
     */
    private function provenance(): string
    {
        $milliseconds = (int) floor(fmod($this->madeAt, 1) * 1000);
        $time = gmdate('H:i:s', (int) $this->madeAt) . sprintf('.%03d', $milliseconds);
        $took = (hrtime(true) - $this->started) / 1e6;
        return '<footer data-made="' . sprintf('%.3f', $this->madeAt) . '">'
            . 'PHP made this page at <time>' . $time . '</time> UTC in ' . sprintf('%.1f', $took)
            . ' ms; it was execution <b>' . $this->execution . '</b>. ' . $this->lifetime()
            . ' <span id="origin">Reload: if the time stands still, the page came from memory.</span></footer>'
            . <<<'HTML'
            <script>
            (() => {
              const navigation = performance.getEntriesByType("navigation")[0];
              const cache = navigation?.serverTiming?.find((metric) => metric.name === "cache");
              const made = Number(document.querySelector("footer").dataset.made) * 1000;
              const age = Math.max(0, performance.timeOrigin + navigation.responseStart - made);
              const origin = document.getElementById("origin");
              if (!cache) return;
              const fromMemory = ["HIT", "STALE", "UPDATING", "REVALIDATED"].includes(cache.description);
              origin.className = fromMemory ? "memory" : "php";
              const shown = age < 1000 ? `${Math.round(age)} ms` : `${(age / 1000).toFixed(1)} s`;
              origin.textContent = fromMemory
                ? `This copy came from memory (${cache.description}), ${shown} old.`
                : `This copy came straight from PHP (${cache.description || "no cache"}).`;
            })();
            </script>
            HTML;
    }

    private function lifetime(): string
    {
        if ($this->names === []) {
            return 'It is not kept.';
        }
        return $this->isKept
            ? 'It reads <i>' . h(implode(', ', $this->names)) . '</i>, and is kept until one of them changes.'
            : 'It is kept for a second.';
    }
}

function h(mixed $text): string
{
    return htmlspecialchars((string) $text, ENT_QUOTES | ENT_SUBSTITUTE | ENT_HTML5, 'UTF-8');
}

function paragraphs(string $text): string
{
    return '<p>' . implode('</p><p>', array_map('h', explode("\n\n", $text))) . '</p>';
}

function counted(int $number, string $thing): string
{
    return $number . ' ' . $thing . ($number === 1 ? '' : 's');
}

function when(int $time): string
{
    return '<time datetime="' . gmdate('c', $time) . '">' . gmdate('j F Y, H:i', $time) . ' UTC</time>';
}
