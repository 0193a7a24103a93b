//! `auth_basic_user_file`.

use crate::site;

#[tokio::test]
async fn a_user_file_from_a_variable_begins_in_the_configurations_folder() {
    let server =
        site("location /open { auth_basic on; auth_basic_user_file $arg_f; try_files /in =404; }")
            .await;
    server.write("users", "anna:{PLAIN}secret\n");
    server.write("in", "in");
    let anna = "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n";
    assert_eq!(
        server.target().get_with("/open?f=users", anna).await.text(),
        "in"
    );
    assert_eq!(
        server
            .target()
            .get_with("/open?f=nobody", anna)
            .await
            .status,
        403
    );
}

#[tokio::test]
async fn a_format_that_nobody_knows_is_refused_and_the_log_says_so() {
    let server =
        site("location /in { auth_basic on; auth_basic_user_file users; try_files /in =404; }")
            .await;
    let yescrypt = "$y$j9T$abcdefgh$79JhsKZwfY/UU2qrk3QcffpHl7EyEEJK0pA5pD1wu73";
    server.write("users", format!("anna:{yescrypt}\nbert:abJnggxhB/yWI\n"));
    server.write("in", "in");
    let target = server.target();
    let anna = "Authorization: Basic YW5uYTpwYXNzd29yZA==\r\n";
    assert_eq!(target.get_with("/in", anna).await.status, 401);
    let log = server.error_log();
    assert!(log.contains("user \"anna\": the format"), "{log}");
    let bert = "Authorization: Basic YmVydDpwYXNzd29yZA==\r\n";
    assert_eq!(target.get_with("/in", bert).await.text(), "in");
}
