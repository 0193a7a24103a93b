<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit;

use Mayfly\Http\ExchangeFailed;
use Mayfly\Http\SocketExchange;
use PHPUnit\Framework\TestCase;

/**
 * Against a server that reads a request and then says what a test wants it to.
 */
final class SocketExchangeTest extends TestCase
{
    private const SERVER = <<<'PHP'
        $listening = stream_socket_server('unix://' . $argv[1]);
        echo "ready\n";
        $peer = stream_socket_accept($listening, 10);
        $request = '';
        while (!str_ends_with($request, 'the body')) { $request .= fread($peer, 8192); }
        fwrite($peer, str_replace('REQUEST', $request, stream_get_contents(STDIN)));
        if (isset($argv[2])) { fread($peer, 1); }
        PHP;

    private string $path;

    /** @var resource|null */
    private $process = null;

    protected function tearDown(): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process);
            proc_close($this->process);
        }
        @unlink($this->path);
    }

    /**
     * @return array{int, string}
     */
    private function ask(string $answer, bool $keepsOpen = false): array
    {
        $this->path = sys_get_temp_dir() . '/mayfly-' . bin2hex(random_bytes(6));
        $command = [\PHP_BINARY, '-r', self::SERVER, '--', $this->path, ...($keepsOpen ? ['open'] : [])];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w']], $pipes);
        self::assertIsResource($process);
        $this->process = $process;
        fwrite($pipes[0], $answer);
        fclose($pipes[0]);
        self::assertSame("ready\n", fgets($pipes[1]));

        return (new SocketExchange(1.0))->post("unix://$this->path", '/1/purge', ['Host' => 'localhost'], 'the body');
    }

    public function testARequestIsSentAndItsAnswerRead(): void
    {
        [$status, $body] = $this->ask("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nREQUEST");
        self::assertSame(200, $status);
        self::assertSame(
            "POST /1/purge HTTP/1.0\r\nHost: localhost\r\nContent-Length: 8\r\nConnection: close\r\n\r\nthe body",
            $body,
        );
    }

    /**
     * @return iterable<string, array{string, bool}>
     */
    public function failures(): iterable
    {
        yield 'no HTTP' => ["SSH-2.0\r\n\r\n", false];
        yield 'no end of the head' => ["HTTP/1.1 200 OK\r\n", false];
        yield 'nothing' => ['', false];
        yield 'half a body' => ["HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", false];
        yield 'an end that does not come' => ["HTTP/1.1 200 OK\r\n\r\nwaiting", true];
    }

    /**
     * @dataProvider failures
     */
    public function testWhatIsNoWholeAnswerFails(string $answer, bool $keepsOpen): void
    {
        $this->expectException(ExchangeFailed::class);
        $this->ask($answer, $keepsOpen);
    }

    public function testNobodyListens(): void
    {
        $this->path = '/nonexistent/socket';
        $this->expectException(ExchangeFailed::class);
        $this->expectExceptionMessage('Nobody answers at unix:///nonexistent/socket');
        (new SocketExchange(1.0))->post("unix://$this->path", '/', [], '');
    }
}
