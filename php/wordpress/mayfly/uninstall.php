<?php

/**
 * Is run by WordPress when the plug-in is deleted.
 */

if (defined('WP_UNINSTALL_PLUGIN')) {
    delete_option('mayfly_waiting');
}
