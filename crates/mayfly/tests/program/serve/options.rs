//! Options of `mayfly serve`.

use crate::command_line::{code, folder, run, stderr, words};

#[test]
fn missing_php_is_named_with_what_to_install() {
    let folder = folder(&[("index.php", "<?php echo 1;")]);
    let dir = folder.path().to_str().expect("a plain path");
    let output = words(&["serve", dir, "--php", "/nowhere/php-fpm"]);
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output).contains("/nowhere/php-fpm is not an executable file"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn printed_configuration_passes_the_test() {
    let folder = folder(&[("index.php", "<?php echo 1;")]);
    let dir = folder.path().to_str().expect("a plain path");
    let output = words(&[
        "serve",
        dir,
        "--print-config",
        "--ttl",
        "200ms",
        "--workers",
        "2",
    ]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let path = folder.path().join("printed.conf");
    std::fs::write(&path, &output.stdout).expect("a file");
    let output = run(folder.path(), &["-t", "-c", "printed.conf"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}
