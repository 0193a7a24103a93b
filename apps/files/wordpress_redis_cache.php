<?php
/**
 * A persistent object cache in Redis for wp-content/object-cache.php. As the usual ones: WP_REDIS_HOST and WP_REDIS_PORT name the server,
 * values are serialised, several keys are asked for at once, and a group can be flushed.
 */

class WP_Object_Cache {
    public $passing = ['counts' => 1, 'plugins' => 1, 'theme_json' => 1];
    private $here = [];
    private $stream;

    /** What the server answers to one command. */
    private function ask(...$words) {
        if (!$this->stream) {
            $this->stream = stream_socket_client('tcp://' . WP_REDIS_HOST . ':' . WP_REDIS_PORT, $code, $text, 2);
            if (!$this->stream) {
                wp_die("Redis: $text");
            }
            $this->ask('INFO', 'server');
        }
        $said = '*' . count($words) . "\r\n";
        foreach ($words as $word) {
            $said .= '$' . strlen($word) . "\r\n$word\r\n";
        }
        for ($at = 0; $at < strlen($said); $at += $written) {
            $written = fwrite($this->stream, substr($said, $at));
            if (!$written) {
                wp_die('Redis: the connection has ended');
            }
        }
        return $this->answer();
    }

    private function answer() {
        $line = fgets($this->stream);
        $rest = substr($line, 1, -2);
        switch ($line[0]) {
            case '+':
            case ':':
                return $rest;
            case '$':
                if ($rest < 0) {
                    return null;
                }
                for ($text = ''; strlen($text) < $rest + 2; $text .= $part) {
                    $part = fread($this->stream, $rest + 2 - strlen($text));
                    if ($part === '' || $part === false) {
                        wp_die('Redis: the connection has ended');
                    }
                }
                return substr($text, 0, -2);
            case '*':
                $list = [];
                for ($each = 0; $each < $rest; $each++) {
                    $list[] = $this->answer();
                }
                return $list;
        }
        wp_die("Redis: $line");
    }

    private function name($key, $group) {
        return ($group ?: 'default') . ":$key";
    }

    private static function copy($value) {
        return is_object($value) ? clone $value : $value;
    }

    public function get($key, $group, $force, &$found = null) {
        $name = $this->name($key, $group);
        if (!$force && array_key_exists($name, $this->here) || isset($this->passing[$group])) {
            $found = array_key_exists($name, $this->here);
            return $found ? self::copy($this->here[$name]) : false;
        }
        $text = $this->ask('GET', $name);
        $found = $text !== null;
        return $found ? self::copy($this->here[$name] = unserialize($text)) : false;
    }

    public function get_multiple($keys, $group, $force) {
        $values = $asked = [];
        foreach ($keys as $key) {
            $name = $this->name($key, $group);
            if (!$force && array_key_exists($name, $this->here) || isset($this->passing[$group])) {
                $values[$key] = array_key_exists($name, $this->here) ? self::copy($this->here[$name]) : false;
            } else {
                $values[$key] = false;
                $asked[$key] = $name;
            }
        }
        foreach ($asked ? array_combine(array_keys($asked), $this->ask('MGET', ...array_values($asked))) : [] as $key => $text) {
            if ($text !== null) {
                $values[$key] = self::copy($this->here[$asked[$key]] = unserialize($text));
            }
        }
        return $values;
    }

    public function set($key, $value, $group, $seconds) {
        $name = $this->name($key, $group);
        $this->here[$name] = self::copy($value);
        if (isset($this->passing[$group])) {
            return true;
        }
        $text = serialize($value);
        return ($seconds > 0 ? $this->ask('SETEX', $name, (string) $seconds, $text) : $this->ask('SET', $name, $text)) === 'OK';
    }

    public function delete($key, $group) {
        $name = $this->name($key, $group);
        $was = array_key_exists($name, $this->here);
        unset($this->here[$name]);
        return isset($this->passing[$group]) ? $was : $this->ask('DEL', $name) > 0;
    }

    public function flush_group($group) {
        $this->here = array_filter($this->here, fn($name) => strpos($name, "$group:") !== 0, ARRAY_FILTER_USE_KEY);
        $from = '0';
        do {
            [$from, $names] = $this->ask('SCAN', $from, 'MATCH', "$group:*", 'COUNT', '500');
            if ($names) {
                $this->ask('DEL', ...$names);
            }
        } while ($from !== '0');
        return true;
    }

    public function flush() {
        $this->here = [];
        return $this->ask('FLUSHDB') === 'OK';
    }
}

function wp_cache_init() {
    $GLOBALS['wp_object_cache'] = new WP_Object_Cache();
}

function wp_cache_get($key, $group = '', $force = false, &$found = null) {
    return $GLOBALS['wp_object_cache']->get($key, $group, $force, $found);
}

function wp_cache_get_multiple($keys, $group = '', $force = false) {
    return $GLOBALS['wp_object_cache']->get_multiple($keys, $group, $force);
}

function wp_cache_set($key, $value, $group = '', $seconds = 0) {
    return $GLOBALS['wp_object_cache']->set($key, $value, $group, (int) $seconds);
}

function wp_cache_add($key, $value, $group = '', $seconds = 0) {
    if (wp_suspend_cache_addition()) {
        return false;
    }
    wp_cache_get($key, $group, false, $found);
    return !$found && wp_cache_set($key, $value, $group, $seconds);
}

function wp_cache_replace($key, $value, $group = '', $seconds = 0) {
    wp_cache_get($key, $group, false, $found);
    return $found && wp_cache_set($key, $value, $group, $seconds);
}

function wp_cache_delete($key, $group = '') {
    return $GLOBALS['wp_object_cache']->delete($key, $group);
}

function wp_cache_incr($key, $by = 1, $group = '') {
    wp_cache_set($key, $value = (int) wp_cache_get($key, $group) + $by, $group);
    return $value;
}

function wp_cache_decr($key, $by = 1, $group = '') {
    return wp_cache_incr($key, -$by, $group);
}

function wp_cache_flush() {
    return $GLOBALS['wp_object_cache']->flush();
}

function wp_cache_flush_group($group) {
    return $GLOBALS['wp_object_cache']->flush_group($group);
}

function wp_cache_supports($feature) {
    return in_array($feature, ['get_multiple', 'flush_group'], true);
}

function wp_cache_close() {
    return true;
}

function wp_cache_add_global_groups($groups) {
}

function wp_cache_add_non_persistent_groups($groups) {
    $GLOBALS['wp_object_cache']->passing += array_fill_keys((array) $groups, 1);
}

function wp_cache_switch_to_blog($blog) {
}

require_once ABSPATH . WPINC . '/cache-compat.php';
