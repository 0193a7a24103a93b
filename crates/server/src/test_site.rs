//! Sites made ready to serve from the text of a configuration, and random numbers, for tests.

use std::sync::Arc;

use live_state::Resources;
use tempfile::TempDir;

use crate::compose;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::request::Request;
use crate::exchange::test_request;
use crate::route::{self, FoundLocation};

/// A site, with the folder that its configuration and its error log are in.
pub struct TestSite {
    pub configuration: Arc<ActiveConfiguration>,
    pub folder: TempDir,
}

impl TestSite {
    /// `http`: the content of that block.
    pub fn new(folder: TempDir, http: &str) -> TestSite {
        let path = folder.path().join("site.conf");
        std::fs::write(&path, format!("events {{}} http {{ {http} }}")).unwrap();
        let log = folder.path().join("error.log");
        let loader = nginx_conf::FileLoader;
        let reading = site::read(&path, folder.path(), None, Some(&log), &loader);
        assert!(!reading.has_errors(), "{:?}", reading.diagnostics);
        let site = reading.site.unwrap();
        TestSite {
            configuration: compose::configuration(site, Resources::default(), None).unwrap(),
            folder,
        }
    }

    /// A request with this line, such as `GET /a?b`, and these field lines, in its location.
    pub fn request(&self, line: &str, fields: &str, now: u64) -> Box<Request> {
        let mut request = test_request::received(&self.configuration, (line, fields), now);
        let server = &self.configuration.site.http.servers[request.route.server().0];
        if let FoundLocation::Location(location) = route::locate(&request, server) {
            request.enter(location);
        }
        request
    }

    /// Returns how many lines the error log has.
    pub fn log_lines(&self) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join("error.log"));
        log.unwrap_or_default().lines().count()
    }
}

/// xorshift64*: enough for picking.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    /// True once in `times` calls.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
