<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit;

use Mayfly\Purge\Purge;
use Mayfly\Purge\PurgeFailed;
use Mayfly\Purge\ServerPurger;
use Mayfly\Tests\FakeExchange;
use PHPUnit\Framework\TestCase;

final class ServerPurgerTest extends TestCase
{
    private const DONE = '{"soft":false,"dry_run":false,"targets":[{"kind":"tag","text":"a","responses":12},'
        . '{"kind":"url","text":"b","responses":3}],"zones":[],"milliseconds":0.041}';

    public function testTheControlSocketIsAskedForAllAtOnce(): void
    {
        $exchange = new FakeExchange(200, self::DONE);
        $purge = new Purge(tags: ['news:5', 'größe'], urls: ['https://example.org/a'], soft: true);
        self::assertSame(15, ServerPurger::atControlSocket('/run/mayfly/control', $exchange)->purge($purge));
        self::assertSame([[
            'unix:///run/mayfly/control',
            '/1/purge',
            ['Host' => 'localhost', 'Content-Type' => 'application/json'],
            '{"tags":["news:5","gr\u00f6\u00dfe"],"urls":["https://example.org/a"],"soft":true}',
        ]], $exchange->requests);
    }

    public function testALocationIsAskedWithItsToken(): void
    {
        $exchange = new FakeExchange(200, self::DONE);
        ServerPurger::atUrl('https://example.org:8443/purge?a=1', 'secret', $exchange)->purge(new Purge(everything: true));
        [$address, $path, $fields, $body] = $exchange->requests[0];
        self::assertSame(['tls://example.org:8443', '/purge?a=1'], [$address, $path]);
        self::assertSame(['example.org:8443', 'Bearer secret'], [$fields['Host'], $fields['Authorization']]);
        self::assertSame('{"everything":true}', $body);
        ServerPurger::atUrl('http://127.0.0.1', null, $exchange)->purge(new Purge(hosts: ['a']));
        self::assertSame(['tcp://127.0.0.1:80', '/'], array_slice($exchange->requests[1], 0, 2));
        self::assertArrayNotHasKey('Authorization', $exchange->requests[1][2]);
    }

    public function testNothingIsAskedForNothing(): void
    {
        $exchange = new FakeExchange(200, self::DONE);
        self::assertSame(0, ServerPurger::atControlSocket('/socket', $exchange)->purge(new Purge()));
        self::assertSame([], $exchange->requests);
    }

    public function testMoreTagsThanTheServerTakesAreAskedForInParts(): void
    {
        $exchange = new FakeExchange(200, self::DONE);
        $tags = array_map(static fn (int $number): string => "tag:$number", range(1, 12_000));
        ServerPurger::atControlSocket('/socket', $exchange)->purge(new Purge(tags: $tags, urls: ['https://a/b']));
        self::assertCount(4, $exchange->requests);
        $named = [];
        foreach ($exchange->requests as [, , , $body]) {
            $said = json_decode($body, true);
            self::assertIsArray($said);
            array_push($named, ...$said['tags'] ?? [], ...$said['urls'] ?? []);
        }
        self::assertSame([...$tags, 'https://a/b'], $named);
    }

    /**
     * @return iterable<string, array{int, string, string}>
     */
    public function refusals(): iterable
    {
        $wrong = '{"error":{"field":"urls[0]","message":"expected an absolute URL"}}';
        yield 'a mistake' => [400, $wrong, 'status 400: urls[0]: expected an absolute URL'];
        yield 'somebody else' => [403, '{"error":{"message":"only programs on this machine"}}', '403: only programs'];
        yield 'no JSON' => [404, '<h1>Not Found</h1>', 'status 404: <h1>Not Found'];
        yield 'another 200' => [200, '<h1>Welcome</h1>', 'status 200: <h1>Welcome'];
    }

    /**
     * @dataProvider refusals
     */
    public function testARefusalSaysWhy(int $status, string $answer, string $words): void
    {
        $this->expectException(PurgeFailed::class);
        $this->expectExceptionMessage($words);
        ServerPurger::atControlSocket('/socket', new FakeExchange($status, $answer))->purge(new Purge(tags: ['a']));
    }

    /**
     * @return iterable<string, array{string, ?string}>
     */
    public function mistakes(): iterable
    {
        yield 'a path' => ['/purge', null];
        yield 'another scheme' => ['file:///etc/passwd', null];
        yield 'a token with a line end' => ['http://localhost/purge', "a\r\nHost: b"];
    }

    /**
     * @dataProvider mistakes
     */
    public function testAMistakeIsFoundAtOnce(string $url, ?string $token): void
    {
        $this->expectException(\InvalidArgumentException::class);
        ServerPurger::atUrl($url, $token);
    }

    public function testTheEnvironmentNamesAWay(): void
    {
        self::assertNull(ServerPurger::fromEnvironment([]));
        self::assertNull(ServerPurger::fromEnvironment(['MAYFLY_CONTROL_SOCKET' => '', 'MAYFLY_PURGE_TOKEN' => 'a']));
        self::assertEquals(
            ServerPurger::atControlSocket('/socket'),
            ServerPurger::fromEnvironment(['MAYFLY_CONTROL_SOCKET' => '/socket', 'MAYFLY_PURGE_URL' => 'http://a/']),
        );
        self::assertEquals(
            ServerPurger::atUrl('http://a/purge', 'token'),
            ServerPurger::fromEnvironment(['MAYFLY_PURGE_URL' => 'http://a/purge', 'MAYFLY_PURGE_TOKEN' => 'token']),
        );
    }
}
