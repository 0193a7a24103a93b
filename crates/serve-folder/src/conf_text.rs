//! Text of `serve` beside the plain lines of [`nginx_conf::text`]: refusals with their reason.

pub(super) use nginx_conf::text::{CannotWrite, Conf, list, path, quoted, table_word, time, word};

/// Refusals of paths and files.
pub(super) trait Refusals {
    /// Refuses the paths that fit `pattern` (without case), whatever is there.
    fn refuse(&mut self, why: &str, pattern: &str);
    fn deny(&mut self, why: &str);
    /// Refuses files in a location, and only files. Other paths are asked for at `fallback`.
    fn refuse_files(&mut self, fallback: &str);
}

impl Refusals for Conf {
    fn refuse(&mut self, why: &str, pattern: &str) {
        self.open(&format!("location ~* \"{}\"", over_lines(pattern)));
        self.deny(why);
        self.close();
        self.gap();
    }

    fn deny(&mut self, why: &str) {
        self.line(&format!("deny_reason \"{why}\";"));
        self.line("deny all;");
    }

    fn refuse_files(&mut self, fallback: &str) {
        self.line("error_page 420 = @refused;");
        self.line("if (-f $request_filename) { return 420; }");
        self.line(&format!("try_files $uri/ {fallback};"));
    }
}

/// `.` fits line breaks as well: a name may have them.
pub(super) fn over_lines(pattern: &str) -> String {
    match pattern.contains(".*") {
        true => format!("(?s){pattern}"),
        false => pattern.to_owned(),
    }
}
