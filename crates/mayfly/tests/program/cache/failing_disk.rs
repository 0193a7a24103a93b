//! The disk on which a zone keeps pages is full, read-only or stalled (`scripts/faults/disk_faults.c`): memory goes on,
//! and a purge that is not on the disk is not answered as if it were.

use std::time::Duration;

use numbers::Number;
use testkit::running::RunningServer;

use super::kept_on_disk::{Data, is, kill, shown, start_with};
use crate::counts::counted;
use crate::lent_library::LentLibrary;

const INPUT_OUTPUT: i64 = 5;
const NO_SPACE: i64 = 28;
const READ_ONLY: i64 = 30;
const STALLED: i64 = -1;

/// A server on a disk that works so far, with a page there.
async fn server_with_page(data: &Data, disk: &LentLibrary) -> RunningServer {
    let mut server = data.server().await;
    server.end().await;
    server.start_again(&disk.program()).await;
    assert!(is(&shown(&server, "/a").await, "version 1", "php"));
    counted(&server, Number::ZoneDiskWrites, 1.0).await;
    server
}

async fn purge(server: &RunningServer) -> (u16, String) {
    let reply = server.target().ask("PURGE", "/a", "", "").await;
    (reply.status, reply.text())
}

/// Purges until that is on the disk, which is tried again each second, and the folder each ten.
async fn purge_until_written(server: &RunningServer) {
    for _ in 0..300 {
        if purge(server).await.0 != 503 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("no purge is written: {}", server.error_log());
}

async fn a_purge_waits_and_memory_goes_on(fault: i64) {
    let Some(disk) = LentLibrary::make("disk_faults.c", "DISK_FAULT_FILE") else {
        return;
    };
    let data = Data::new().await;
    let mut server = server_with_page(&data, &disk).await;
    disk.set(fault);
    data.change();
    let (status, said) = purge(&server).await;
    assert!(
        status == 503 && said.contains("not on the disk"),
        "{status} {said}"
    );
    assert!(server.error_log().contains("not on the disk"));
    // It holds all the same, and memory keeps pages made now.
    assert!(is(&shown(&server, "/a").await, "version 2", "php"));
    assert!(is(&shown(&server, "/a").await, "version 2", "memory"));
    disk.set(0);
    purge_until_written(&server).await;
    data.change();
    kill(&mut server).await;
    start_with(&mut server, 0.0).await;
    assert_eq!(shown(&server, "/a").await.0, "version 3");
}

#[tokio::test]
async fn a_purge_is_refused_while_the_disk_is_full() {
    a_purge_waits_and_memory_goes_on(NO_SPACE).await;
}

#[tokio::test]
async fn a_purge_is_refused_while_the_disk_fails() {
    a_purge_waits_and_memory_goes_on(INPUT_OUTPUT).await;
}

#[tokio::test]
async fn a_purge_is_refused_while_the_disk_is_read_only() {
    a_purge_waits_and_memory_goes_on(READ_ONLY).await;
}

#[tokio::test]
async fn a_purge_is_refused_while_the_disk_is_stalled() {
    a_purge_waits_and_memory_goes_on(STALLED).await;
}

#[tokio::test]
async fn a_purge_is_refused_where_the_pages_of_an_earlier_start_cannot_be_opened() {
    let Some(disk) = LentLibrary::make("disk_faults.c", "DISK_FAULT_FILE") else {
        return;
    };
    let data = Data::new().await;
    let mut server = server_with_page(&data, &disk).await;
    server.end().await;
    disk.set(READ_ONLY);
    data.change();
    server.start_again(&disk.program()).await;
    assert!(is(&shown(&server, "/a").await, "version 2", "php"));
    assert!(is(&shown(&server, "/a").await, "version 2", "memory"));
    assert_eq!(purge(&server).await.0, 503);
    disk.set(0);
    purge_until_written(&server).await;
    kill(&mut server).await;
    start_with(&mut server, 0.0).await;
    assert_eq!(shown(&server, "/a").await.0, "version 2");
}
