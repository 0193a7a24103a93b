<?php
for ($block = 0; $block < 64; $block++) {
    echo str_repeat(chr(65 + $block % 26), 1 << 16);
}
