<?php

declare(strict_types=1);

namespace Mayfly\Purge;

/**
 * The folder in which purges are left while no server runs. It reads them before it answers its first request.
 */
final class PurgeFolder
{
    /** Says which folder it is; PHP of Mayfly's own pools finds it in its environment. */
    private const VARIABLE = 'MAYFLY_PURGE_FOLDER';

    /** If more are there, one that purges everything takes the place of further ones. */
    private const MAX_FILES = 1000;

    /** The server reads no more of a purge. */
    private const MAX_BYTES = 1 << 20;

    private const EVERYTHING = '{"everything":true}';

    public function __construct(public readonly string $path)
    {
    }

    /**
     * @param array<array-key, mixed> $environment such as `getenv()` or `$_SERVER`
     */
    public static function fromEnvironment(array $environment): ?self
    {
        $path = $environment[self::VARIABLE] ?? null;

        return is_string($path) && str_starts_with($path, '/') ? new self($path) : null;
    }

    /**
     * Leaves a purge. When this returns, it is on the disk; ask the server again then: one that has begun meanwhile
     * does not look here any more.
     *
     * @param string $json what a server would be asked for
     *
     * @return string the file
     *
     * @throws PurgeFailed
     */
    public function leave(string $json): string
    {
        $names = @scandir($this->path, \SCANDIR_SORT_NONE);
        if ($names === false) {
            throw new PurgeFailed("Purges cannot be left in $this->path.");
        }
        $isTooMuch = count($names) > self::MAX_FILES || strlen($json) > self::MAX_BYTES;
        $name = $isTooMuch ? 'everything' : bin2hex(random_bytes(16));
        $file = "$this->path/$name.json";
        $this->write($file, $isTooMuch ? self::EVERYTHING : $json);

        return $file;
    }

    public function takeBack(string $file): void
    {
        @unlink($file);
    }

    /**
     * @throws PurgeFailed
     */
    private function write(string $file, string $text): void
    {
        $unfinished = $this->path . '/.' . bin2hex(random_bytes(16));
        $stream = @fopen($unfinished, 'x');
        // The second time for the name.
        $isWritten = $stream !== false
            && @chmod($unfinished, 0640)
            && @fwrite($stream, $text) === strlen($text)
            && @fsync($stream)
            && @rename($unfinished, $file)
            && @fsync($stream);
        if ($stream !== false) {
            fclose($stream);
        }
        if (!$isWritten) {
            @unlink($unfinished);
            throw new PurgeFailed("A purge cannot be left in $this->path.");
        }
    }
}
