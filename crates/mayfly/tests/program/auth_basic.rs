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
