<?php

declare(strict_types=1);

namespace Mayfly\Tests\Integration;

use Mayfly\Purge\Purge;
use Mayfly\Purge\PurgeFailed;
use Mayfly\Purge\ServerPurger;
use PHPUnit\Framework\TestCase;

/**
 * The library in PHP-FPM behind a running Mayfly, whose program MAYFLY_BINARY names.
 */
final class ServerTest extends TestCase
{
    private const TOKEN = 'bWF5Zmx5LXRlc3RzLXRva2Vu';

    private RunningServer $server;

    protected function setUp(): void
    {
        if (RunningServer::binary() === null) {
            self::markTestSkipped('MAYFLY_BINARY names no server.');
        }
        $this->server = new RunningServer();
    }

    protected function tearDown(): void
    {
        if (isset($this->server)) {
            $this->server->stop();
        }
    }

    public function testTheExampleOfTheReadmeWorksAsItSays(): void
    {
        $readme = (string) file_get_contents(dirname(__DIR__, 2) . '/README.md');
        self::assertSame(1, preg_match('/```php\n(.+?)```/s', $readme, $example));
        $this->server->write('site/index.php', $example[1]);
        $this->server->write('news/5', 'First <text>.');
        $this->server->write('news/6', 'Another.');
        $this->server->writeAutoload('site');
        $folder = $this->server->folder;
        $this->server->start(['serve', "$folder/site", '--listen', "127.0.0.1:{$this->server->port}", '--ttl', '1h']);
        foreach (['/?id=5', '/?id=5&page=2', '/?id=6'] as $target) {
            // The second one is made for comparison.
            foreach (['first', 'second'] as $visit) {
                self::assertSame('MISS', $this->server->ask($target)[2]['x-cache'] ?? null, "$target, $visit");
            }
            [$status, $body, $fields] = $this->server->ask($target);
            self::assertSame([200, 'HIT'], [$status, $fields['x-cache']], $target);
            self::assertArrayNotHasKey('surrogate-key', $fields);
            self::assertArrayNotHasKey('x-accel-expires', $fields);
            self::assertStringContainsString('no-cache', $fields['cache-control']);
            self::assertSame($target === '/?id=6' ? 'Another.' : 'First &lt;text&gt;.', $body);
        }
        [$status, , $fields] = $this->server->ask('/?id=5', ['text' => 'Second.']);
        self::assertSame(200, $status);
        self::assertArrayNotHasKey('x-cache-purge-tags', $fields);
        foreach (['/?id=5', '/?id=5&page=2'] as $target) {
            [, $body, $fields] = $this->server->ask($target);
            self::assertSame(['Second.', 'MISS'], [$body, $fields['x-cache']], $target);
        }
        self::assertSame('HIT', $this->server->ask('/?id=6')[2]['x-cache'], 'another page stays');
    }

    public function testLateTagsTheControlSocketAndThePurgeApi(): void
    {
        $this->server->write('tokens', 'tests:' . hash('sha256', self::TOKEN) . "\n");
        $this->server->writeAutoload('site');
        $this->server->write('site/late.php', <<<'PHP'
            <?php
            require __DIR__ . '/vendor/autoload.php';
            $mayfly = Mayfly\Mayfly::start()->reads('early');
            echo 'the beginning, ';
            ob_flush();
            flush();
            $mayfly->reads('late', 'größe');
            echo 'the end';
            PHP);
        $this->server->write('site/many.php', <<<'PHP'
            <?php
            require __DIR__ . '/vendor/autoload.php';
            $mayfly = Mayfly\Mayfly::start();
            for ($number = 0; $number < 2000; $number++) {
                $mayfly->reads("number:$number");
            }
            PHP);
        $this->server->write('site/unmarked/late.php', <<<'PHP'
            <?php
            require dirname(__DIR__) . '/vendor/autoload.php';
            $mayfly = Mayfly\Mayfly::start()->reads('early');
            ob_flush();
            flush();
            $mayfly->reads('late');
            PHP);
        $this->server->write('site/change.php', <<<'PHP'
            <?php
            require __DIR__ . '/vendor/autoload.php';
            Mayfly\Mayfly::start()->changed($_POST['tag']);
            PHP);
        $this->server->write('site/job.php', <<<'PHP'
            <?php
            require __DIR__ . '/vendor/autoload.php';
            Mayfly\Mayfly::start()->changed($argv[1]);
            PHP);
        $this->server->write('mayfly.conf', $this->configuration());
        $this->server->start(['-p', $this->server->folder, '-c', 'mayfly.conf']);

        $socket = "{$this->server->folder}/control";
        $byUrl = ServerPurger::atUrl("http://127.0.0.1:{$this->server->port}/purge", self::TOKEN);
        $bySocket = ServerPurger::atControlSocket($socket);
        $this->isPurgedBy('/late.php', 'early', static fn () => $byUrl->purge(new Purge(tags: ['early'])));
        $this->isPurgedBy('/late.php', 'late', static fn () => $byUrl->purge(new Purge(tags: ['late'])));
        $this->isPurgedBy('/late.php', 'encoded', static fn () => $bySocket->purge(new Purge(tags: ['gr%C3%B6%C3%9Fe'])));
        $this->isPurgedBy('/late.php', 'a response', fn () => $this->server->ask('/change.php', ['tag' => 'late']));
        $this->isPurgedBy('/many.php', 'the first', static fn () => $bySocket->purge(new Purge(tags: ['number:0'])));
        $this->isPurgedBy('/many.php', 'the last', static fn () => $bySocket->purge(new Purge(tags: ['number:1999'])));
        $this->isPurgedBy('/late.php', 'a job', fn () => $this->runJob($socket, 'late'));
        self::assertSame(1, $bySocket->purge(new Purge(urls: ["http://127.0.0.1/late.php"])));

        $this->server->ask('/unmarked/late.php');
        self::assertSame('MISS', $this->server->ask('/unmarked/late.php')[2]['x-cache'], 'tags are missing');

        $this->expectException(PurgeFailed::class);
        $this->expectExceptionMessage('status 401');
        ServerPurger::atUrl("http://127.0.0.1:{$this->server->port}/purge", 'other')->purge(new Purge(tags: ['late']));
    }

    public function testAPurgeWhileTheServerIsStoppedHoldsAfterTheStart(): void
    {
        $this->server->writeAutoload('site');
        $this->server->write('news', 'old');
        $this->server->write('site/page.php', <<<'PHP'
            <?php
            require __DIR__ . '/vendor/autoload.php';
            Mayfly\Mayfly::start()->reads("news:$_GET[id]");
            echo file_get_contents(dirname(__DIR__) . '/news'), ' ', getenv('MAYFLY_PURGE_FOLDER');
            PHP);
        $this->server->write('site/job.php', <<<'PHP'
            <?php
            require __DIR__ . '/vendor/autoload.php';
            Mayfly\Mayfly::start()->changed($argv[1]);
            PHP);
        $this->server->write('mayfly.conf', $this->configuration());
        $arguments = ['-p', $this->server->folder, '-c', 'mayfly.conf'];
        $left = "{$this->server->folder}/cache/left-purges/site";
        $this->server->start($arguments);
        foreach (['/page.php?id=1', '/page.php?id=2'] as $target) {
            self::assertSame("old $left", $this->server->ask($target)[1]);
        }
        $this->server->end();
        $this->server->write('news', 'new');
        $this->runJob("{$this->server->folder}/control", 'news:1', $left);
        $names = array_diff((array) scandir($left), ['.', '..']);
        self::assertCount(1, $names);
        $this->server->start($arguments);
        self::assertSame("new $left", $this->server->ask('/page.php?id=1')[1]);
        [, $body, $fields] = $this->server->ask('/page.php?id=2');
        self::assertSame(["old $left", 'HIT'], [$body, $fields['x-cache']], 'another page stays');
        $until = microtime(true) + 20;
        while (array_diff((array) scandir($left), ['.', '..']) !== [] && microtime(true) < $until) {
            usleep(20_000);
        }
        self::assertSame(['.', '..'], scandir($left), 'what was left is done');
        $this->runJob("{$this->server->folder}/control", 'news:2', $left);
        self::assertSame(['.', '..'], scandir($left), 'a server that runs is asked');
        self::assertSame("new $left", $this->server->ask('/page.php?id=2')[1]);
    }

    private function configuration(): string
    {
        $folder = $this->server->folder;

        return <<<CONF
            daemon off;
            pid $folder/pid;
            error_log $folder/error.log notice;
            control_socket $folder/control;
            events {}
            php_pool site { workers 2; }
            http {
                access_log off;
                fastcgi_cache_path $folder/cache keys_zone=pages:4m;
                server {
                    listen 127.0.0.1:{$this->server->port};
                    root $folder/site;
                    fastcgi_cache pages;
                    fastcgi_cache_key \$request_uri;
                    fastcgi_cache_valid 200 1h;
                    add_header X-Cache \$upstream_cache_status always;
                    location = /purge { cache_purge_api; cache_purge_token $folder/tokens; }
                    location /unmarked/ { fastcgi_pass php:site; }
                    location / { fastcgi_pass php:site; cache_tags on stderr; }
                }
            }
            CONF;
    }

    /**
     * @param \Closure(): mixed $purge
     */
    private function isPurgedBy(string $target, string $what, \Closure $purge): void
    {
        $this->server->ask($target);
        self::assertSame('HIT', $this->server->ask($target)[2]['x-cache'], "before: $what");
        $purge();
        self::assertSame('MISS', $this->server->ask($target)[2]['x-cache'], $what);
    }

    private function runJob(string $socket, string $tag, string $purgeFolder = ''): void
    {
        $command = [\PHP_BINARY, "{$this->server->folder}/site/job.php", $tag];
        $process = proc_open(
            $command,
            [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]],
            $pipes,
            null,
            [
                'MAYFLY_CONTROL_SOCKET' => $socket,
                'MAYFLY_PURGE_FOLDER' => $purgeFolder,
                'PATH' => (string) getenv('PATH'),
            ],
        );
        self::assertIsResource($process);
        self::assertSame('', stream_get_contents($pipes[1]));
        self::assertSame(0, proc_close($process));
    }
}
