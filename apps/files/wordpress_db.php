<?php
/**
 * A class of its own for the database, for wp-content/db.php in the scenario wordpress_plugin_installed.
 */
require_once ABSPATH . WPINC . '/class-wpdb.php';

class Another_Database extends wpdb {
}

$wpdb = new Another_Database(DB_USER, DB_PASSWORD, DB_NAME, DB_HOST);
