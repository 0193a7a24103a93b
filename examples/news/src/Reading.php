<?php

declare(strict_types=1);

namespace News;

/**
 * The controllers of pages. Each says what its page reads, beside reading it.
 */
final class Reading
{
    /** A page is kept until something that it reads changes, but no longer than this. */
    private const KEEP_SECONDS = 3600;

    /** What a search finds depends on every article there is and will be. So its lifetime ends it. */
    private const SEARCH_SECONDS = 5;

    private readonly News $news;
    private readonly Keeping $keeping;
    private readonly Html $html;
    private readonly Fragments $fragments;

    public function __construct(private readonly Site $site)
    {
        $this->news = $site->news;
        $this->keeping = $site->keeping;
        $this->html = new Html($site->keeping);
        $this->fragments = new Fragments($site);
    }

    public function answer(Request $request): Response
    {
        if (str_starts_with($request->path, '/fragments/')) {
            return $this->fragments->answer($request);
        }
        if ($request->path === '/editor/') {
            $this->keeping->private();

            return Response::html((new EditorPage($this->news))->html());
        }
        $this->keeping->keepFor(self::KEEP_SECONDS);
        $article = $request->number('/news/');
        $author = $request->number('/author/');
        $section = $request->name('/section/');

        return match (true) {
            $request->path === '/' => $this->front($request),
            $request->path === '/feed.atom' => $this->feed(),
            $request->path === '/sitemap.xml' => $this->sitemap(),
            $request->path === '/search' => $this->search($request),
            $article !== null => $this->article($request, $article),
            $author !== null => $this->author($request, $author),
            $section !== null => $this->section($request, $section),
            default => $this->nothing($request),
        };
    }

    private function front(Request $request): Response
    {
        $this->keeping->reads('newest');

        return $this->page($request, 'River News', $this->headlines($this->news->newest()));
    }

    private function section(Request $request, string $slug): Response
    {
        $section = $this->news->section($slug);
        if ($section === null) {
            // The menu says which there are, and the page reads that.
            return $this->nothing($request, true);
        }
        $this->keeping->reads("section:$slug", "section-list:$slug");
        $about = '<p class="lead">' . h($section['about']) . '</p>';

        return $this->page($request, (string) $section['name'], $about . $this->headlines($this->news->inSection($slug)));
    }

    private function author(Request $request, int $id): Response
    {
        $author = $this->news->author($id);
        if ($author === null) {
            return $this->nothing($request);
        }
        $this->keeping->reads("author:$id", "author-list:$id");

        return $this->page($request, (string) $author['name'], $this->headlines($this->news->byAuthor($id)));
    }

    private function article(Request $request, int $id): Response
    {
        $this->keeping->reads("news:$id");
        $article = $this->news->article($id);
        if ($article === null) {
            // It may come, and then this page is purged by `news:$id`.
            return $this->nothing($request, true);
        }
        $this->keeping->reads("headline:$id", "author:{$article['author']}", "comments:$id");
        $author = $this->news->author($article['author']);
        $section = $this->news->section($article['section']);

        return $this->page(
            $request,
            (string) $article['title'],
            $this->html->article($article, $author['name'] ?? '', $section['name'] ?? '', $this->news->comments($id)),
        );
    }

    private function search(Request $request): Response
    {
        $this->keeping->keepFor(self::SEARCH_SECONDS);
        $word = Request::argument('q');
        $found = $word === '' ? [] : $this->news->search($word);
        // What it shows is not declared: an article that it does not find yet has no name here.
        $list = implode('', array_map($this->html->headline(...), $found));

        return $this->page($request, 'Search', $this->html->searchForm($word) . $list);
    }

    private function feed(): Response
    {
        $this->keeping->reads('newest');
        $newest = $this->news->newest();
        $this->readHeadlines($newest);

        return new Response(200, 'application/atom+xml; charset=utf-8', Feed::atom($this->site->url, $newest));
    }

    private function sitemap(): Response
    {
        $this->keeping->reads('addresses');
        $paths = ['/'];
        foreach ($this->news->sections() as $section) {
            $paths[] = "/section/{$section['slug']}";
        }
        foreach ($this->news->drafts() as $article) {
            if ($article['published'] !== null) {
                $paths[] = "/news/{$article['id']}";
            }
        }

        return new Response(200, 'application/xml; charset=utf-8', Feed::sitemap($this->site->url, $paths));
    }

    private function nothing(Request $request, bool $isKept = false): Response
    {
        if (!$isKept) {
            // There is no end of addresses that lead nowhere.
            $this->keeping->keepFor(0);
        }

        return $this->page($request, 'Nothing here', '<p>This page may have been a mayfly, too.</p>', 404);
    }

    /**
     * @param list<array<string, mixed>> $rows
     */
    private function headlines(array $rows): string
    {
        $this->readHeadlines($rows);

        return implode('', array_map($this->html->headline(...), $rows));
    }

    /**
     * @param list<array<string, mixed>> $rows
     */
    private function readHeadlines(array $rows): void
    {
        foreach ($rows as $row) {
            $this->keeping->reads("headline:{$row['id']}", "author:{$row['author']}");
        }
    }

    private function page(Request $request, string $title, string $content, int $status = 200): Response
    {
        $this->keeping->reads('sections');
        $menu = $this->html->menu($this->news->sections());

        return Response::html($this->html->page($title, $menu, $content, $this->fragments, $request), $status);
    }
}
