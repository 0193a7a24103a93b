//! The files of a location and the rules for opening them: `root`, `alias` and `disable_symlinks`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use site::{Builtin as B, Root};
use site_files::open::{self, Failure, FoundFile, LinkRule, OpenPurpose};

use crate::exchange::reply::ReplyHead;
use crate::exchange::request::Request;
use crate::exchange::value::put;
use crate::exchange::variable::{append_sent, evaluate};
use crate::exchange::variable_table::Value::Reply;
use crate::exchange::variable_table::Variables;

pub const VARIABLES: Variables = &[
    (B::DocumentRoot, Reply(put_document_root)),
    (B::RealpathRoot, Reply(put_realpath_root)),
];

/// `root` or `alias` for this request, without the request's path.
pub fn document_root(request: &Request) -> Vec<u8> {
    let settings = request.settings();
    let (Root::Root(template) | Root::Alias(template)) = &settings.files.root;
    evaluate(request, template)
}

/// Looks at `path`, as `disable_symlinks` allows.
pub fn look(request: &Request, path: &[u8], wanted: OpenPurpose) -> Result<FoundFile, Failure> {
    let settings = &request.settings().files;
    let Some(links) = &settings.disable_symlinks else {
        return open::look(path, wanted, settings);
    };
    let from = evaluate(request, &links.from);
    open::look_now(path, wanted, LinkRule::new(path, &from, links.if_not_owner))
}

fn put_document_root(request: &Request, sent: Option<&ReplyHead>, out: &mut Vec<u8>) -> bool {
    let settings = request.settings();
    let (Root::Root(template) | Root::Alias(template)) = &settings.files.root;
    append_sent(request, sent, template, out);
    true
}

fn put_realpath_root(request: &Request, sent: Option<&ReplyHead>, out: &mut Vec<u8>) -> bool {
    let mut root = Vec::new();
    put_document_root(request, sent, &mut root);
    match std::fs::canonicalize(OsStr::from_bytes(&root)) {
        Ok(path) => put(Some(path.as_os_str().as_bytes()), out),
        Err(_) => false,
    }
}
