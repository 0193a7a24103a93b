<?php
echo md5_file('php://input');
