<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit;

use Mayfly\Http\Exchange;
use Mayfly\Http\ExchangeFailed;
use Mayfly\Http\NoServer;
use Mayfly\Purge\Purge;
use Mayfly\Purge\PurgeFailed;
use Mayfly\Purge\PurgeFolder;
use Mayfly\Purge\ServerPurger;
use PHPUnit\Framework\TestCase;

final class PurgeFolderTest extends TestCase
{
    private const DONE = [200, '{"targets":[{"kind":"tag","text":"a","responses":2}]}'];

    private string $path;

    protected function setUp(): void
    {
        $this->path = sys_get_temp_dir() . '/mayfly-' . bin2hex(random_bytes(6));
        mkdir($this->path);
    }

    protected function tearDown(): void
    {
        array_map(unlink(...), array_map(fn (string $name): string => "$this->path/$name", $this->names()));
        rmdir($this->path);
    }

    /**
     * @return list<string>
     */
    private function names(): array
    {
        return array_values(array_diff(scandir($this->path) ?: [], ['.', '..']));
    }

    /**
     * @param array{int, string}|ExchangeFailed ...$answers one after the other
     */
    private function purger(array|ExchangeFailed ...$answers): ServerPurger
    {
        $exchange = new class (array_values($answers)) implements Exchange {
            /** @param list<array{int, string}|ExchangeFailed> $answers */
            public function __construct(private array $answers)
            {
            }

            public function post(string $address, string $path, array $fields, string $body): array
            {
                $answer = array_shift($this->answers) ?? new ExchangeFailed('It was asked too often.');

                return $answer instanceof ExchangeFailed ? throw $answer : $answer;
            }
        };

        return ServerPurger::atControlSocket('/socket', $exchange, new PurgeFolder($this->path));
    }

    public function testAPurgeIsLeftWhereNoServerRuns(): void
    {
        $absent = new NoServer('none');
        self::assertSame(0, $this->purger($absent, $absent)->purge(new Purge(tags: ['a'])));
        [$name] = $this->names();
        self::assertMatchesRegularExpression('/^[0-9a-f]{32}\.json$/', $name);
        self::assertSame('{"tags":["a"]}', file_get_contents("$this->path/$name"));
    }

    public function testAServerThatBeginsMeanwhileIsAsked(): void
    {
        self::assertSame(2, $this->purger(new NoServer('none'), self::DONE)->purge(new Purge(tags: ['a'])));
        self::assertSame([], $this->names());
    }

    public function testAServerThatRunsAndFailsIsNotDone(): void
    {
        foreach ([[new ExchangeFailed('late')], [new NoServer('none'), new ExchangeFailed('late')]] as $answers) {
            try {
                $this->purger(...$answers)->purge(new Purge(tags: ['a']));
                self::fail('The purge is not done.');
            } catch (PurgeFailed $failure) {
                self::assertSame('late', $failure->getMessage());
            }
        }
    }

    public function testTooManyAndTooLongPurgesAreOneOfEverything(): void
    {
        $folder = new PurgeFolder($this->path);
        $file = $folder->leave('{"tags":["' . str_repeat('a', 1 << 20) . '"]}');
        self::assertSame(["$this->path/everything.json", '{"everything":true}'], [$file, file_get_contents($file)]);
        for ($number = 0; $number < 1000; $number++) {
            touch("$this->path/$number.json");
        }
        self::assertSame($file, $folder->leave('{"tags":["a"]}'));
        self::assertCount(1001, $this->names());
    }

    public function testAFolderThatIsNotThereIsAFailure(): void
    {
        self::assertNull(PurgeFolder::fromEnvironment(['MAYFLY_PURGE_FOLDER' => 'relative']));
        $folder = PurgeFolder::fromEnvironment(['MAYFLY_PURGE_FOLDER' => "$this->path/none"]);
        self::assertNotNull($folder);
        $this->expectException(PurgeFailed::class);
        $folder->leave('{"tags":["a"]}');
    }
}
