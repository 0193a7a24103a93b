<?php

declare(strict_types=1);

namespace News;

/**
 * The controllers of forms. Each hands on what the write says that it has changed, and knows no page.
 */
final class Writing
{
    private readonly Edits $edits;

    public function __construct(private readonly Site $site)
    {
        $this->edits = new Edits($site->database, $site->news);
    }

    /**
     * @return array{Response, list<string>} the second is what has changed
     */
    public function answer(Request $request): array
    {
        // Answers to forms are for who sent them.
        $this->site->keeping->private();
        $commented = $request->number('/news/', '/comments');
        $saved = $request->number('/saved/');

        return match (true) {
            $request->path === '/visit' => $this->visit(),
            $commented !== null => $this->comment($commented),
            $saved !== null => $this->save($request, $saved),
            $request->path === '/editor/' => [Response::seeOther('/editor/'), $this->edit(Request::field('do'))],
            default => [new Response(405, 'text/plain; charset=utf-8', "This page can only be read.\n", ['Allow' => 'GET, HEAD']), []],
        };
    }

    /** @return array{Response, list<string>} */
    private function visit(): array
    {
        $name = Request::field('name', 40);
        $fields = $name === '' ? [] : ['Set-Cookie' => $this->site->visitors->add($name)];

        return [Response::seeOther('/', $fields), []];
    }

    /** @return array{Response, list<string>} */
    private function comment(int $article): array
    {
        $name = Request::field('name', 40);
        $text = Request::field('text', 1000);
        $isOne = $name !== '' && $text !== '' && $this->site->news->article($article) !== null;

        return [Response::seeOther("/news/$article#comments"), $isOne ? $this->edits->comment($article, $name, $text) : []];
    }

    /** @return array{Response, list<string>} */
    private function save(Request $request, int $article): array
    {
        $visitor = $this->site->visitors->find($request->cookie);
        if ($visitor !== null && $this->site->news->article($article) !== null) {
            $this->site->visitors->save($visitor['id'], $article);
        }

        // No page has changed: what is put aside is in a fragment that nobody keeps.
        return [Response::seeOther("/news/$article"), []];
    }

    /**
     * @return list<string>
     */
    private function edit(string $do): array
    {
        $edits = $this->edits;
        $text = static fn (string $name): string => Request::field($name, 10000);
        $number = static fn (string $name): int => (int) Request::field($name);
        $id = $number('id');
        $slug = Request::field('slug');
        if (in_array($do, ['add', 'add section'], true) && preg_match('/^[a-z]{1,30}$/D', $slug) !== 1) {
            return [];
        }

        return match ($do) {
            'add' => $edits->addArticle($slug, $number('author'), $text('title'), $text('lead'), $text('body')),
            'headline' => $edits->changeHeadline($id, $text('title'), $text('lead')),
            'text' => $edits->changeText($id, $text('body')),
            'author' => $edits->changeAuthor($id, $number('author')),
            'move' => $edits->move($id, $slug),
            'publish' => $edits->publish($id, time() - 3600 * $number('hours')),
            'schedule' => $edits->schedule($id, time() + $number('seconds')),
            'withdraw' => $edits->withdraw($id),
            'delete' => $edits->delete($id),
            'remove comment' => $edits->removeComment($number('comment'), $id),
            'rename author' => $edits->renameAuthor($id, $text('name')),
            'add section' => $edits->addSection($slug, $text('name'), $text('about')),
            'rename section' => $edits->renameSection($slug, $text('name')),
            'describe section' => $edits->describeSection($slug, $text('about')),
            default => [],
        };
    }
}
