//! Helpers for tests only: a scripted client, a fake PHP, processes started
//! on free ports.

pub mod fake_php;
