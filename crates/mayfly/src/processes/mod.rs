//! The processes of a running server: the parent that starts, reloads and stops ([`supervisor`]), and the
//! unprivileged process that serves ([`worker_process`]), with the sockets, pools and files between them.

pub mod account;
pub mod activation;
pub mod backend;
pub mod certificates;
pub mod channel;
pub mod control_socket;
pub mod daemon;
pub mod event_loop;
pub mod handover;
pub mod journal;
pub mod large_store;
mod learning_library;
pub mod limits;
pub mod logs;
pub mod messages;
mod node_certificates;
pub mod orders;
pub mod passed_sockets;
pub mod pid_file;
pub mod pools;
pub mod service_manager;
pub mod serving;
pub mod sibling_socket;
pub mod signals;
pub mod site_folders;
pub mod socket_holder;
pub mod socket_name;
pub mod sockets;
pub mod supervisor;
pub mod upgrade;
pub mod worker_handle;
pub mod worker_process;
