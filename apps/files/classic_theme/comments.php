<section id="comments">
<ol><?php wp_list_comments(['style' => 'ol']); ?></ol>
<?php comment_form(); ?>
</section>
