<?php

declare(strict_types=1);

namespace News;

/**
 * What pages look like. Everything that came from outside goes through h(): where the server puts pages
 * together, a tag of a visitor's would be run.
 */
final class Html
{
    public function __construct(private readonly Keeping $keeping)
    {
    }

    public function page(string $title, string $menu, string $content, Fragments $fragments, Request $request): string
    {
        $visitor = $this->visitor($this->keeping->fragment('/fragments/visitor', fn (): string => $fragments->visitor($request)));
        $river = $this->keeping->fragment('/fragments/river', fn (): string => $fragments->river());
        $discussed = $this->keeping->fragment('/fragments/discussed', fn (): string => $fragments->discussed());

        return '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>' . h($title) . '</title>'
            . '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="/style.css">'
            . '<link rel="alternate" type="application/atom+xml" href="/feed.atom"></head><body>'
            . "<header><a href=\"/\">River News</a><div id=\"visitor\">$visitor</div></header>$menu"
            . '<main><h1>' . h($title) . "</h1>$content</main>"
            . "<aside><div id=\"river\">$river</div><div id=\"discussed\">$discussed</div></aside>"
            . $this->foot() . "</body></html>\n";
    }

    /**
     * @param list<array<string, mixed>> $sections
     */
    public function menu(array $sections): string
    {
        $links = array_map(
            static fn (array $section): string => '<a href="/section/' . h($section['slug']) . '">' . h($section['name']) . '</a>',
            $sections,
        );

        return '<nav>' . implode(' ', [...$links, '<a href="/search">Search</a>']) . '</nav>';
    }

    /**
     * @param array<string, mixed> $row
     */
    public function headline(array $row): string
    {
        return '<article><h2><a href="/news/' . $row['id'] . '">' . h($row['title']) . '</a></h2><p>' . h($row['lead'])
            . '</p><p class="small">' . h(date('j F Y', $row['published'])) . ', <a href="/author/' . $row['author'] . '">'
            . h($row['author_name']) . '</a></p></article>';
    }

    /**
     * @param array<string, mixed>       $article
     * @param list<array<string, mixed>> $comments
     */
    public function article(array $article, string $author, string $section, array $comments): string
    {
        $id = $article['id'];
        $list = array_map(
            static fn (array $comment): string => '<li><p>' . nl2br(h($comment['text'])) . '</p><p class="small">' . h($comment['name']) . '</p></li>',
            $comments,
        );

        return '<p class="small">' . h(date('j F Y, H:i', $article['published'])) . ", <a href=\"/author/{$article['author']}\">" . h($author)
            . '</a>, in <a href="/section/' . h($article['section']) . '">' . h($section) . '</a></p>'
            . '<p class="lead">' . h($article['lead']) . '</p><p>' . nl2br(h($article['body'])) . '</p>'
            . "<form method=\"post\" action=\"/saved/$id\"><button>Put aside</button></form>"
            . '<section id="comments"><h2>Comments</h2><ol>' . implode('', $list) . '</ol>'
            . "<form method=\"post\" action=\"/news/$id/comments\"><label>Name <input name=\"name\" maxlength=\"40\" required></label> "
            . '<label>Comment <textarea name="text" maxlength="1000" required></textarea></label> <button>Send</button></form></section>';
    }

    public function searchForm(string $word): string
    {
        return '<form action="/search"><input name="q" value="' . h($word) . '"> <button>Search</button></form>';
    }

    /**
     * The part of the visitor's own. Whoever has no cookie has none, and PHP is not asked for it.
     */
    private function visitor(string $part): string
    {
        if (!str_starts_with($part, '<esi:')) {
            return $part;
        }
        $test = '$(HTTP_COOKIE{' . Visitors::COOKIE . "})!=''";

        return "<esi:choose><esi:when test=\"$test\">$part</esi:when><esi:otherwise>" . Fragments::FORM . '</esi:otherwise></esi:choose>';
    }

    /**
     * Why the page is as it is.
     */
    private function foot(): string
    {
        return '<footer>PHP made this page at <time>' . now() . '</time>. It reads <i>' . h(implode(', ', $this->keeping->identifiers()))
            . '</i>, and is kept until one of them changes.</footer>';
    }
}
