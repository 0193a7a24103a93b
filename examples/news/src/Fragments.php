<?php

declare(strict_types=1);

namespace News;

/**
 * Parts of pages that live differently: one is each visitor's own, one is measured all the time, one counts
 * over everything.
 */
final class Fragments
{
    private const RIVER_SECONDS = 1;
    private const DISCUSSED_SECONDS = 60;

    /** Of a visitor whom nobody knows. */
    public const FORM = '<form method="post" action="/visit"><label>Your name <input name="name" maxlength="40" required></label> '
        . '<button>Enter</button></form>';

    public function __construct(private readonly Site $site)
    {
    }

    public function answer(Request $request): Response
    {
        return match ($request->path) {
            '/fragments/visitor' => Response::html($this->visitor($request)),
            '/fragments/river' => Response::html($this->river()),
            '/fragments/discussed' => Response::html($this->discussedNow()),
            default => Response::html('', 404),
        };
    }

    /**
     * The visitor's name, and how many articles they have put aside.
     */
    public function visitor(Request $request): string
    {
        $this->site->keeping->private();
        $visitor = $this->site->visitors->find($request->cookie);
        if ($visitor === null) {
            return self::FORM;
        }

        return 'Hello <b>' . h($visitor['name']) . '</b>, ' . $visitor['saved'] . ' put aside.';
    }

    /**
     * What a gauge writes into the file river.txt. It does not say when, so this is kept for a second.
     */
    public function river(): string
    {
        $this->site->keeping->keepFor(self::RIVER_SECONDS);
        $level = @file_get_contents($this->site->folder . '/river.txt');

        return 'River: <b>' . ($level === false ? 'unknown' : (int) $level . ' cm') . '</b>' . self::made();
    }

    /**
     * The same as a response of its own, which ends with the headlines that it shows.
     */
    private function discussedNow(): string
    {
        foreach ($this->site->news->discussed() as $row) {
            $this->site->keeping->reads('headline:' . $row['id']);
        }

        return $this->discussed();
    }

    /**
     * Kept for a minute: it need not be exact.
     */
    public function discussed(): string
    {
        $this->site->keeping->keepFor(self::DISCUSSED_SECONDS);
        $rows = array_map(
            static fn (array $row): string => '<li><a href="/news/' . $row['id'] . '">' . h($row['title']) . '</a> (' . $row['comments'] . ')</li>',
            $this->site->news->discussed(),
        );

        return '<h2>Most discussed</h2><ol>' . implode('', $rows) . '</ol>' . self::made();
    }

    private static function made(): string
    {
        return ' <small>(' . now() . ')</small>';
    }
}
