<?php

// Publishes the articles whose time has come; for cron, each minute:
//
//   MAYFLY_CONTROL_SOCKET=/path/to/mayfly.control php bin/publish-due.php
//
// There is no response that could say what has changed. So the library asks the server, which the environment
// names, before this ends. With pages in memcached, NEWS_MEMCACHED says where that is.

declare(strict_types=1);

namespace News;

require __DIR__ . '/../src/start.php';

$site = Site::open();
$site->write(function () use ($site): array {
    $changed = (new Edits($site->database, $site->news))->publishDue(time());
    echo $changed === [] ? "Nothing is due.\n" : 'Changed: ' . implode(', ', $changed) . "\n";

    return [Response::seeOther('/'), $changed];
});
