//! Checks that may end a request before its content: addresses, passwords, the answers of
//! other servers, limits.

pub mod allow_deny;
pub mod auth_basic;
pub mod body_length;
pub mod control;
pub mod htaccess;
pub mod limit_conn;
mod limit_key;
pub mod limit_req;
pub mod limits;
pub mod real_ip;
pub mod referer;
pub mod secure_link;
