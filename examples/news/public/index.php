<?php

// Every address that is no file arrives here. A GET makes a page out of one state of the data; a POST
// changes the data, and says what it has changed.
//
//   GET  /  /news/ID  /section/NAME  /author/ID  /feed.atom  /sitemap.xml  /search?q=WORD
//   GET  /fragments/visitor  /fragments/river  /fragments/discussed       parts of those pages
//   POST /news/ID/comments   /visit   /saved/ID                            visitors
//   GET, POST /editor/                                                     editors

declare(strict_types=1);

namespace News;

require __DIR__ . '/../src/start.php';

$request = Request::current();
$site = Site::open();
if ($request->method === 'POST') {
    $response = $request->isForged()
        ? new Response(403, 'text/plain; charset=utf-8', "This form was sent from another site.\n")
        : $site->write(fn () => (new Writing($site))->answer($request));
} else {
    $response = $site->read(fn () => (new Reading($site))->answer($request));
}
$site->keeping->finish($request, $response);
$response->send();
