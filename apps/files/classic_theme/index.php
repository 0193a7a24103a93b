<!DOCTYPE html>
<html <?php language_attributes(); ?>>
<head><meta charset="<?php bloginfo('charset'); ?>"><?php wp_head(); ?></head>
<body <?php body_class(); ?> data-colour="<?php echo esc_attr(get_theme_mod('colour', 'none')); ?>">
<header><a href="<?php echo esc_url(home_url('/')); ?>"><?php bloginfo('name'); ?></a> <?php bloginfo('description'); ?>
<?php wp_nav_menu(['theme_location' => 'primary']); ?></header>
<main>
<?php the_archive_title('<h1>', '</h1>'); the_archive_description(); ?>
<?php if (is_search()) { printf('<h1>%s</h1>', esc_html(get_search_query())); get_search_form(); } ?>
<?php if (!have_posts()) { echo '<p>Nothing here.</p>'; } ?>
<?php while (have_posts()) : the_post(); ?>
<article <?php post_class(); ?>>
    <h2><a href="<?php the_permalink(); ?>"><?php the_title(); ?></a></h2>
    <?php the_post_thumbnail('thumbnail'); ?>
    <p><?php the_time(get_option('date_format')); ?>, <?php the_author_posts_link(); ?>, <?php the_category(', '); ?> <?php the_tags(); ?>
    <?php comments_number(); ?></p>
    <?php is_singular() ? the_content() : the_excerpt(); ?>
    <?php if (is_single()) : ?>
        <p class="author"><?php the_author_meta('description'); ?></p>
        <?php the_post_navigation(); ?>
        <?php dynamic_sidebar('below'); ?>
    <?php endif; ?>
    <?php if (is_singular()) { comments_template(); } ?>
</article>
<?php endwhile; the_posts_pagination(); ?>
</main>
<?php if (!is_singular()) : ?><aside><?php dynamic_sidebar('side'); ?></aside><?php endif; ?>
<?php wp_footer(); ?>
</body></html>
