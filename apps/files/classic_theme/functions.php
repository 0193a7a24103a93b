<?php
add_action('after_setup_theme', function () {
    add_theme_support('title-tag');
    add_theme_support('post-thumbnails');
    add_theme_support('automatic-feed-links');
    register_nav_menus(['primary' => 'Above']);
});
add_action('widgets_init', function () {
    register_sidebar(['id' => 'side', 'name' => 'Beside']);
    register_sidebar(['id' => 'below', 'name' => 'Below articles']);
});
