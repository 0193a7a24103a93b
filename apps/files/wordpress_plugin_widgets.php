<?php
/**
 * Menus and widgets of the theme without blocks, for the scenario of the plug-in; run by wordpress_eval.php.
 */
set_theme_mod('nav_menu_locations', ['primary' => $given['menu']]);
update_option('widget_recent-posts', [2 => ['title' => 'Newest', 'number' => 3]] + ['_multiwidget' => 1]);
update_option('widget_recent-comments', [2 => ['title' => 'Said', 'number' => 3]] + ['_multiwidget' => 1]);
update_option('widget_categories', [2 => ['title' => 'Sections', 'count' => 0, 'hierarchical' => 0, 'dropdown' => 0]] + ['_multiwidget' => 1]);
update_option('widget_text', [2 => ['title' => 'Word', 'text' => 'A few words.', 'filter' => false, 'visual' => false]] + ['_multiwidget' => 1]);
update_option('sidebars_widgets', [
    'side' => ['recent-posts-2', 'recent-comments-2', 'categories-2'], 'below' => ['text-2'],
    'wp_inactive_widgets' => [], 'array_version' => 3,
]);
