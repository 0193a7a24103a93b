<?php
// The only public script: every URL of the news site that is not a file arrives here.
//
//   GET  /                   front page        GET  /feed     Atom feed
//   GET  /news/ID            one news item     POST /news/ID  a comment, then back

declare(strict_types=1);

$started = hrtime(true);
// `make run` puts a copy of the library beside the site.
$library = __DIR__ . '/../library/autoload.php';
require is_file($library) ? $library : __DIR__ . '/../../php/library/autoload.php';
require __DIR__ . '/../news/store.php';
require __DIR__ . '/../news/pages.php';

$store = new Store($_SERVER['NEWS_DATA'] ?? __DIR__ . '/../../target/demo/data');
$execution = $store->countExecution();
$mayfly = Mayfly\Mayfly::start();
$pages = new Pages($started, $execution, $mayfly, Mayfly\Server::fromParams($_SERVER)->isMayfly);

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH) ?: '/';
$method = $_SERVER['REQUEST_METHOD'];
$item = preg_match('#^/news/([1-9][0-9]{0,8})$#D', $path, $match)
    ? $store->item((int) $match[1])
    : null;

if ($item && $method === 'POST') {
    // People do not see the field "website"; what fills it in is a program.
    $author = trim((string) ($_POST['author'] ?? ''));
    $text = trim((string) ($_POST['text'] ?? ''));
    if (($_POST['website'] ?? '') === '' && $author !== '' && $text !== '') {
        $store->addComment($item['id'], mb_cut($author, 60), mb_cut($text, 2000));
        // The pages that show them are made anew for everybody, before this is answered.
        $mayfly->changed("comments:{$item['id']}");
    }
    header('Location: /news/' . $item['id'] . '#comments', true, 303);
} elseif (!in_array($method, ['GET', 'HEAD'], true)) {
    header('Allow: GET, HEAD' . ($item ? ', POST' : ''), true, 405);
    $pages->message('That does not work here', 'This page can only be read.');
} elseif ($path === '/') {
    $pages->front($store->items());
} elseif ($path === '/feed') {
    $pages->feed($store->items());
} elseif ($item) {
    $pages->item($item, $store->comments($item['id']));
} else {
    http_response_code(404);
    $pages->message('Nothing here', 'This page may have been a mayfly, too.');
}

/** At most so many characters, never half of one; needs no mbstring. */
function mb_cut(string $text, int $characters): string
{
    return preg_match('/^.{0,' . $characters . '}/su', $text, $match) ? $match[0] : '';
}
