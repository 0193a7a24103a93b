//! The commands that are typed: a file each, or a folder, and what several of them need. Each ends in an
//! [`Exit`](command_line::Exit).

pub mod cache;
pub mod check;
pub mod convert;
pub mod doctor;
pub mod explain;
pub mod explain_audit;
pub mod local_authority;
pub mod nodes;
pub mod noisy_statements;
pub mod purge;
pub mod run;
pub mod run_file;
pub mod running_server;
pub mod serve;
pub mod serve_cache;
pub mod serve_dashboard;
pub mod serve_home;
pub mod serve_htaccess;
pub mod serve_learn;
pub mod serve_listen;
pub mod signal;
pub mod tools;
pub mod top;
pub mod top_screen;
pub mod unit_writes;
pub mod unix_sockets;
pub mod upgrade;
pub mod warm;
