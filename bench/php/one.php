<?php header('Cache-Control: public, max-age=3600'); header('Content-Length: 2'); echo 'ok';
