//! The server of `--dashboard`, for the operator.

use super::conf_text::{CannotWrite, Conf, path};
use super::options::ServeOptions;

pub(super) fn dashboard(conf: &mut Conf, options: &ServeOptions) -> Result<(), CannotWrite> {
    let Some(dashboard) = &options.dashboard else {
        return Ok(());
    };
    conf.gap();
    conf.note("The server's numbers and what is stored, for this machine alone.");
    conf.open("server");
    conf.line(&format!("listen {};", dashboard.place));
    conf.line("server_name localhost;");
    conf.gap();
    conf.open("location = /");
    if options.service {
        // No start makes a token there.
        conf.note("To purge in the dashboard, a token is needed: mayfly purge --new-token NAME prints one, and a");
        conf.note("line for a file that \"cache_purge_token FILE;\" names here.");
    } else {
        conf.note(
            "`mayfly serve` makes a token at each start. Another one: mayfly purge --new-token NAME",
        );
        conf.line(&format!("cache_purge_token {};", path(&dashboard.tokens)?));
    }
    conf.line("dashboard;");
    conf.close();
    conf.gap();
    conf.open("location = /metrics");
    conf.line("metrics;");
    conf.close();
    conf.gap();
    conf.open("location /");
    conf.line("return 404;");
    conf.close();
    conf.close();
    Ok(())
}
