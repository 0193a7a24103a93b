//! One test program of the parser.

mod golden;
mod nginx_agrees;
mod properties;
mod regressions;
