<?php

declare(strict_types=1);

namespace News;

/**
 * The page with the forms of editors. Nobody keeps it.
 */
final class EditorPage
{
    public function __construct(private readonly News $news)
    {
    }

    public function html(): string
    {
        $articles = implode('', array_map($this->article(...), $this->news->drafts()));
        $sections = implode('', array_map($this->section(...), $this->news->sections()));
        $authors = implode('', array_map($this->author(...), $this->news->authors()));

        return '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Editors</title>'
            . '<link rel="stylesheet" href="/style.css"></head><body><header><a href="/">River News</a></header><main>'
            . "<h1>Articles</h1>$articles"
            . self::form('add', [], ['title' => '', 'lead' => '', 'body' => '', 'slug' => 'river', 'author' => '1'])
            . "<h1>Sections</h1>$sections" . self::form('add section', [], ['slug' => '', 'name' => '', 'about' => ''])
            . "<h1>Authors</h1>$authors</main></body></html>\n";
    }

    /**
     * @param array<string, mixed> $article
     */
    private function article(array $article): string
    {
        $is = ['id' => $article['id']];
        $comments = array_map(
            static fn (array $comment): string => '<li>' . h($comment['text'])
                . self::form('remove comment', $is + ['comment' => $comment['id']], []) . '</li>',
            $this->news->comments($article['id']),
        );
        $state = $article['published'] === null
            ? self::form('publish', $is, ['hours' => 0]) . self::form('schedule', $is, ['seconds' => 60])
            : self::form('withdraw', $is, []);

        return '<details><summary>' . $article['id'] . ' ' . h($article['title']) . ($article['published'] === null ? ' (draft)' : '') . '</summary>'
            . self::form('headline', $is, ['title' => $article['title'], 'lead' => $article['lead']])
            . self::form('text', $is, ['body' => $article['body']])
            . self::form('author', $is, ['author' => $article['author']])
            . self::form('move', $is, ['slug' => $article['section']])
            . $state . self::form('delete', $is, []) . '<ol>' . implode('', $comments) . '</ol></details>';
    }

    /**
     * @param array<string, mixed> $section
     */
    private function section(array $section): string
    {
        $is = ['slug' => $section['slug']];

        return self::form('rename section', $is, ['name' => $section['name']])
            . self::form('describe section', $is, ['about' => $section['about']]);
    }

    /**
     * @param array<string, mixed> $author
     */
    private function author(array $author): string
    {
        return self::form('rename author', ['id' => $author['id']], ['name' => $author['name']]);
    }

    /**
     * @param array<string, mixed> $is    what it is about
     * @param array<string, mixed> $texts what can be written
     */
    private static function form(string $do, array $is, array $texts): string
    {
        $fields = '';
        foreach ($is as $name => $value) {
            $fields .= "<input type=\"hidden\" name=\"$name\" value=\"" . h($value) . '">';
        }
        foreach ($texts as $name => $value) {
            $fields .= "<label>$name <input name=\"$name\" value=\"" . h($value) . '"></label> ';
        }

        return "<form method=\"post\" action=\"/editor/\">$fields<button name=\"do\" value=\"$do\">$do</button></form>";
    }
}
