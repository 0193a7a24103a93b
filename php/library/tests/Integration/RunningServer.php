<?php

declare(strict_types=1);

namespace Mayfly\Tests\Integration;

/**
 * A Mayfly with PHP-FPM, started for a test on a port of its own, in a folder of its own.
 */
final class RunningServer
{
    private const START_SECONDS = 20;

    public readonly string $folder;

    public readonly int $port;

    /** @var resource|null */
    private $process = null;

    public function __construct()
    {
        $this->folder = sys_get_temp_dir() . '/mayfly-library-' . bin2hex(random_bytes(6));
        mkdir($this->folder);
        // PHP runs as another account if the server is started by root.
        chmod($this->folder, 0777);
        $probe = stream_socket_server('tcp://127.0.0.1:0') ?: throw new \RuntimeException('no free port');
        $name = (string) stream_socket_get_name($probe, false);
        $this->port = (int) substr($name, (int) strrpos($name, ':') + 1);
        fclose($probe);
    }

    /**
     * The program, as the environment names it; null if it does not.
     */
    public static function binary(): ?string
    {
        $binary = getenv('MAYFLY_BINARY');

        return $binary === false || $binary === '' ? null : $binary;
    }

    public function write(string $name, string $text): void
    {
        $path = "$this->folder/$name";
        if (!is_dir(dirname($path))) {
            mkdir(dirname($path), recursive: true);
            chmod(dirname($path), 0777);
        }
        file_put_contents($path, $text);
        chmod($path, 0666);
    }

    /**
     * A site finds the library where Composer would have put it.
     */
    public function writeAutoload(string $folder): void
    {
        $library = var_export(dirname(__DIR__, 2) . '/autoload.php', true);
        $this->write("$folder/vendor/autoload.php", "<?php require $library;");
    }

    /**
     * @param list<string> $arguments
     */
    public function start(array $arguments): void
    {
        $log = ['file', "$this->folder/log", 'a'];
        $process = proc_open([(string) self::binary(), ...$arguments], [['file', '/dev/null', 'r'], $log, $log], $pipes);
        $this->process = is_resource($process) ? $process : throw new \RuntimeException('the server does not start');
        $until = microtime(true) + self::START_SECONDS;
        while (($connection = @stream_socket_client("tcp://127.0.0.1:$this->port", $code, $reason, 1)) === false) {
            if (microtime(true) > $until || !proc_get_status($this->process)['running']) {
                throw new \RuntimeException('the server does not answer: ' . file_get_contents("$this->folder/log"));
            }
            usleep(20_000);
        }
        fclose($connection);
    }

    /**
     * @param array<string, string> $form sent with POST, if there is one
     *
     * @return array{int, string, array<string, string>} status, body, fields by their names in lower case
     */
    public function ask(string $target, array $form = []): array
    {
        $http = ['ignore_errors' => true, 'timeout' => 20, 'protocol_version' => 1.0];
        if ($form !== []) {
            $type = 'Content-Type: application/x-www-form-urlencoded';
            $http += ['method' => 'POST', 'header' => $type, 'content' => http_build_query($form)];
        }
        $body = file_get_contents(
            "http://127.0.0.1:$this->port$target",
            false,
            stream_context_create(['http' => $http]),
        );
        $fields = [];
        $status = 0;
        foreach ($http_response_header as $line) {
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            if (preg_match('~^HTTP/\S+ (\d+)~', $line, $found) === 1) {
                $status = (int) $found[1];
            } else {
                $fields[strtolower($name)] = trim($value);
            }
        }

        return [$status, (string) $body, $fields];
    }

    public function stop(): void
    {
        $this->end();
        self::remove($this->folder);
    }

    /**
     * The server ends; the folder stays.
     */
    public function end(): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process);
            $until = microtime(true) + 10;
            while (proc_get_status($this->process)['running'] && microtime(true) < $until) {
                usleep(20_000);
            }
            proc_terminate($this->process, 9);
            proc_close($this->process);
            $this->process = null;
        }
    }

    private static function remove(string $path): void
    {
        if (is_dir($path) && !is_link($path)) {
            foreach (array_diff(scandir($path) ?: [], ['.', '..']) as $name) {
                self::remove("$path/$name");
            }
            @rmdir($path);
        } else {
            @unlink($path);
        }
    }
}
