<?php

declare(strict_types=1);

namespace News;

/**
 * Pages for programs.
 */
final class Feed
{
    /**
     * RFC 4287.
     *
     * @param list<array<string, mixed>> $rows
     */
    public static function atom(string $url, array $rows): string
    {
        $entries = array_map(static function (array $row) use ($url): string {
            $link = h("$url/news/{$row['id']}");

            return '<entry><title>' . h($row['title']) . "</title><id>$link</id><link href=\"$link\"/><updated>"
                . gmdate('Y-m-d\TH:i:s\Z', $row['published']) . '</updated><summary>' . h($row['lead']) . '</summary><author><name>'
                . h($row['author_name']) . '</name></author></entry>';
        }, $rows);
        $updated = gmdate('Y-m-d\TH:i:s\Z', (int) ($rows[0]['published'] ?? 0));

        return "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>River News</title><id>"
            . h("$url/") . "</id><updated>$updated</updated>" . implode('', $entries) . self::made() . "</feed>\n";
    }

    /**
     * https://www.sitemaps.org/protocol.html
     *
     * @param list<string> $paths
     */
    public static function sitemap(string $url, array $paths): string
    {
        $urls = array_map(static fn (string $path): string => '<url><loc>' . h($url . $path) . '</loc></url>', $paths);

        return "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">"
            . implode('', $urls) . self::made() . "</urlset>\n";
    }

    private static function made(): string
    {
        return '<!-- made at ' . now() . ' -->';
    }
}
