<?php

/**
 * Is run by WordPress when the plug-in is deleted.
 */

if (defined('WP_UNINSTALL_PLUGIN')) {
    foreach (['mayfly_waiting', 'mayfly_purge_folder', 'mayfly_counters', 'mayfly_files'] as $option) {
        delete_option($option);
    }
}
