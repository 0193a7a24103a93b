<?php
/**
 * A persistent object cache in APCu, for wp-content/object-cache.php in the scenario wordpress_plugin_installed: what
 * one request has read from the database, the next ones take from here.
 */

class WP_Object_Cache {
    public $passing = ['counts' => 1, 'plugins' => 1, 'theme_json' => 1];
    private $here = [];

    public function get($key, $group, &$found = null) {
        $name = ($group ?: 'default') . ":$key";
        $found = isset($this->passing[$group]) ? array_key_exists($name, $this->here) : apcu_exists($name);
        $value = $found ? $this->here[$name] ?? apcu_fetch($name) : false;
        return is_object($value) ? clone $value : $value;
    }

    public function set($key, $value, $group, $seconds) {
        $name = ($group ?: 'default') . ":$key";
        if (isset($this->passing[$group])) {
            $this->here[$name] = $value;
            return true;
        }
        return apcu_store($name, $value, (int) $seconds);
    }

    public function delete($key, $group) {
        $name = ($group ?: 'default') . ":$key";
        unset($this->here[$name]);
        return apcu_delete($name);
    }
}

function wp_cache_init() {
    $GLOBALS['wp_object_cache'] = new WP_Object_Cache();
}

function wp_cache_get($key, $group = '', $force = false, &$found = null) {
    return $GLOBALS['wp_object_cache']->get($key, $group, $found);
}

function wp_cache_set($key, $value, $group = '', $seconds = 0) {
    return $GLOBALS['wp_object_cache']->set($key, $value, $group, $seconds);
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
    return apcu_clear_cache();
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
