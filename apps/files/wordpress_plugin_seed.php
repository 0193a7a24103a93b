<?php
/**
 * A site of ordinary size for the scenario of the plug-in, made by wordpress_eval.php: returns the numbers
 * of what it made.
 */
$made = ['posts' => [], 'pages' => [], 'categories' => [], 'tags' => [], 'comments' => []];
foreach (['News' => '', 'Local' => 'News', 'Sport' => '', 'Arts' => ''] as $name => $above) {
    $term = wp_insert_term($name, 'category', ['parent' => $above === '' ? 0 : $made['categories'][strtolower($above)]]);
    $made['categories'][strtolower($name)] = $term['term_id'];
}
foreach (['red', 'green', 'blue', 'rare'] as $name) {
    $made['tags'][$name] = wp_insert_term($name, 'post_tag')['term_id'];
}
$image = function ($name) {
    $folder = wp_upload_dir();
    $picture = imagecreatetruecolor(400, 300);
    imagefill($picture, 0, 0, crc32($name) & 0xffffff);
    imagepng($picture, "$folder[path]/$name.png");
    $id = wp_insert_attachment(
        ['post_title' => $name, 'post_mime_type' => 'image/png', 'post_status' => 'inherit'],
        "$folder[path]/$name.png",
    );
    wp_update_attachment_metadata($id, wp_generate_attachment_metadata($id, "$folder[path]/$name.png"));
    return $id;
};
$made['image'] = $image('harbour');
$made['other_image'] = $image('tower');
$authors = array_values($given['authors']);
$categories = array_values($made['categories']);
$colours = ['red', 'green', 'blue'];
$today = strtotime('-10 days');
for ($number = 1; $number <= 24; $number++) {
    $id = wp_insert_post([
        'post_title' => "Article $number", 'post_name' => "article-$number", 'post_status' => 'publish',
        'post_content' => "<!-- wp:paragraph --><p>The text of article $number.</p><!-- /wp:paragraph -->",
        'post_author' => $authors[$number % count($authors)],
        'post_category' => [$categories[$number % count($categories)]],
        'tags_input' => $number === 24 ? ['rare'] : [$colours[$number % 3]],
        // Over two years and four months.
        'post_date' => gmdate('Y-m-d H:i:s', $today - (24 - $number) * 5 * 86400 - ($number < 5 ? 300 * 86400 : 0)),
        'comment_status' => 'open',
    ]);
    $made['posts']["article-$number"] = $id;
    if ($number % 4 === 0) {
        set_post_thumbnail($id, $made['image']);
    }
    for ($comment = 0; $comment < $number % 3; $comment++) {
        $made['comments'][] = wp_insert_comment([
            'comment_post_ID' => $id, 'comment_author' => "Reader $comment", 'comment_content' => "Comment $comment on $number.",
            'comment_approved' => 1, 'comment_date' => gmdate('Y-m-d H:i:s', $today + $number * 60 + $comment),
        ]);
    }
}
$made['block'] = wp_insert_post([
    'post_type' => 'wp_block', 'post_status' => 'publish', 'post_title' => 'Notice',
    'post_content' => '<!-- wp:paragraph --><p>A notice that is used twice.</p><!-- /wp:paragraph -->',
]);
foreach (['about' => '', 'team' => 'about', 'history' => 'about', 'contact' => '', 'imprint' => ''] as $name => $above) {
    $block = sprintf('<!-- wp:block {"ref":%d} /-->', $made['block']);
    $made['pages'][$name] = wp_insert_post([
        'post_type' => 'page', 'post_status' => 'publish', 'post_title' => ucfirst($name), 'post_name' => $name,
        'post_parent' => $above === '' ? 0 : $made['pages'][$above], 'post_author' => $authors[0],
        'post_content' => "<!-- wp:paragraph --><p>The page $name.</p><!-- /wp:paragraph -->"
            . (in_array($name, ['contact', 'imprint'], true) ? $block : '')
            . ($name === 'team' ? '<!-- wp:latest-posts {"postsToShow":3} /--><!-- wp:categories {"showPostCounts":true} /-->' : '')
            . ($name === 'history' ? '<!-- wp:latest-comments /--><!-- wp:tag-cloud /-->' : ''),
    ]);
}
foreach (['poll', 'events', 'banner', 'offer', 'offer_until', 'links', 'people', 'popular', 'colours', 'term_colour', 'form', 'short', 'visits', 'views', 'past'] as $name) {
    $made['pages'][$name] = wp_insert_post([
        'post_type' => 'page', 'post_status' => 'publish', 'post_title' => "Own $name", 'post_name' => "own-$name",
        // Lists show the newest pages: not these, of which some are different each time.
        'post_date' => '2020-01-01 00:00:00',
        'post_author' => $authors[0], 'post_content' => "<!-- wp:shortcode -->[tables_$name]<!-- /wp:shortcode -->",
    ]);
}
$made['draft'] = wp_insert_post(['post_title' => 'Kept back', 'post_name' => 'kept-back', 'post_status' => 'draft', 'post_content' => 'Later.']);
$made['held'] = wp_insert_comment([
    'comment_post_ID' => $made['posts']['article-4'], 'comment_author' => 'Hilda', 'comment_author_email' => 'hilda@example.test',
    'comment_content' => 'May I?', 'comment_approved' => 0, 'comment_date_gmt' => gmdate('Y-m-d H:i:s'),
]);
$made['moderation_hash'] = wp_hash(get_comment($made['held'])->comment_date_gmt);
wp_set_post_terms($made['posts']['article-11'], '', 'post_format');
$made['link'] = wp_insert_link(['link_name' => 'A friend', 'link_url' => 'https://friend.example.test/']);
update_term_meta($made['categories']['sport'], 'colour', 'green');
update_post_meta($made['posts']['article-2'], 'colour', 'red');
$menu = wp_create_nav_menu('Main');
$item = fn ($arguments) => wp_update_nav_menu_item($menu, 0, $arguments + ['menu-item-status' => 'publish']);
$item(['menu-item-type' => 'post_type', 'menu-item-object' => 'page', 'menu-item-object-id' => $made['pages']['about']]);
$item(['menu-item-type' => 'taxonomy', 'menu-item-object' => 'category', 'menu-item-object-id' => $made['categories']['sport']]);
$made['menu_item'] = $item(['menu-item-type' => 'custom', 'menu-item-title' => 'Elsewhere', 'menu-item-url' => 'https://example.test/']);
$made['menu'] = $menu;
switch_theme($given['theme']);
update_option('posts_per_page', 6);
update_option('blog_public', '1');
wp_delete_post(1, true);
wp_delete_post(2, true);
return $made;
