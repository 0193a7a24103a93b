//! Words beside nginx's flags: `serve`, `check`, `convert`, `explain`, `purge`, `warm`, `top`, `advise`, `bench`,
//! `doctor`, `upgrade`, `nodes`, `run`, `cache`, `help`, `version`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use command_line::{AdviseArgs, BenchArgs, ServerArgs};

use crate::cli::audit_args::AuditArgs;
use crate::cli::elsewhere::{WORDS, with_tip};
use crate::cli::serve_args::ServeArgs;
use crate::cli::values::fastcgi_address;

/// A web server for PHP sites that keeps finished pages in memory.
#[derive(Parser)]
#[command(
    name = "mayfly",
    disable_version_flag = true,
    after_help = "nginx's flags (-c -p -g -e -t -T -q -v -V -s) work as they do there: mayfly -h shows them.\n\
                  Exit codes: 0 done; 1 refused (bad configuration, failed start); 2 wrong use of a command, or no \
                  server found; doctor: 3 warnings, 4 errors."
)]
struct Line {
    #[command(subcommand)]
    word: Word,
}

/// The command that words ask for.
#[derive(Debug, PartialEq, Subcommand)]
pub enum Word {
    /// Serve the site in a folder or behind an HTTP server, without a configuration
    Serve(Box<ServeArgs>),
    /// Check a configuration: report lines that run, lines without a meaning, missing directives and unsafe parts
    ///
    /// Exit codes: 0 the configuration is accepted and has no hazards; 1 it is refused; 3 it has hazards that
    /// are warnings; 4 it has hazards that are errors.
    Check(CheckArgs),
    /// Make servers of Apache's virtual hosts, or name the lines of .htaccess files that have another effect
    ///
    /// Each line that has another effect than in Apache becomes a comment with the reason. Exit codes: 0 all lines are
    /// obeyed or translated, or nothing is lost without them; 1 a file cannot be read or written, or its sections do
    /// not fit together; 3 some lines are not translated; 4 some of these keep visitors out.
    Convert(ConvertArgs),
    /// Explain how a running server would answer a request and why, or show its stored pages; audit pages for cache
    /// poisoning
    ///
    /// Exit codes with --audit: 0 nothing is found; 1 there are findings; 2 nothing is found, and not all pages
    /// were audited to the end.
    Explain(Box<ExplainArgs>),
    /// Remove stored responses of a running server
    Purge(Box<PurgeArgs>),
    /// Make a running server store pages before visitors ask for them
    Warm(Box<WarmArgs>),
    /// Show the numbers of a running server, live
    Top(Box<TopArgs>),
    /// Read access logs, and report how much work each lifetime of stored pages would save
    Advise(AdviseArgs),
    /// Put load on a server of this machine and measure what visitors feel, or load a page as a browser does
    Bench(Box<BenchArgs>),
    /// Find faults of this machine, PHP and the configuration; changes nothing
    Doctor(DoctorArgs),
    /// Have a running server replaced by the program that lies at its path now; no connection is lost
    ///
    /// The server starts the program file that it was started from, which may be another version by now. The new
    /// program reads the configuration and gets the sockets, PHP and the stored pages. Once it serves, the old one
    /// takes no more connections, finishes its requests, and ends. If the new one refuses to serve, ends or does not
    /// answer, the old one goes on, and this command prints the reason and ends with 1.
    Upgrade(ServerArgs),
    /// Show the servers that share purges (cache_nodes), or expel one that hangs
    Nodes(NodesArgs),
    /// Run a command whose writes to the database end learned pages at once (cache_learn)
    Run(RunArgs),
    /// Look into a folder in which a zone keeps pages on disk
    #[command(subcommand)]
    Cache(CacheWord),
    /// Show the version
    Version,
}

/// A word that was read, or a text that answers it.
#[derive(Debug, PartialEq)]
pub enum WordResult {
    Word(Word),
    /// For stdout: `help`, `serve --help`, ...
    Text(String),
}

/// How the report of `check` is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    #[default]
    Text,
    Json,
    Sarif,
}

#[derive(Args, Clone, Debug, PartialEq)]
pub struct CheckArgs {
    /// Explain the effect of each directive
    #[arg(long)]
    pub explain: bool,
    /// Write changed copies, FILE.fixed, in which the hazards are mended that have one right answer
    #[arg(long)]
    pub fix: bool,
    /// With --fix: change the files themselves
    #[arg(long, requires = "fix")]
    pub in_place: bool,
    /// Form of the report: text for people, JSON, or SARIF for programs that show findings beside code
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// The configuration file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Args, Clone, Debug, PartialEq)]
pub struct ConvertArgs {
    /// Address of PHP-FPM, such as unix:/run/php/php-fpm.sock: the result then runs scripts itself
    #[arg(long, value_name = "ADDRESS", value_parser = fastcgi_address)]
    pub php: Option<String>,
    /// Write into this file, which must not be there yet [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// .htaccess files of one site, or a configuration with virtual hosts; - for standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct PurgeArgs {
    /// Purge the responses stored for this URL; a URL without a host, such as /news/5, needs --host
    #[arg(value_name = "URL", group = "what")]
    pub urls: Vec<String>,
    /// Purge all pages with this tag; may be given more than once, like --prefix, --pattern and --host
    #[arg(long, value_name = "TAG", group = "what")]
    pub tag: Vec<String>,
    /// Purge all URLs that begin with this one
    #[arg(long, value_name = "URL", group = "what")]
    pub prefix: Vec<String>,
    /// Purge all URLs that match a pattern such as `https://example.org/news/*`, or a regular expression such as
    /// `~^example\.org/news/[0-9]+$`
    #[arg(long, value_name = "PATTERN", group = "what")]
    pub pattern: Vec<String>,
    /// Purge all URLs of this host; with URLs without a host, the host that they belong to
    #[arg(long, value_name = "NAME", group = "what")]
    pub host: Vec<String>,
    /// Purge all that is stored
    #[arg(long, group = "what")]
    pub all: bool,
    /// Show the stale page while one request fetches the new one
    #[arg(long)]
    pub soft: bool,
    /// Only count the responses that would be purged
    #[arg(long)]
    pub dry_run: bool,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerArgs,
    /// Make a token of this name for cache_purge_token; purges nothing
    #[arg(
        long,
        value_name = "NAME",
        group = "what",
        conflicts_with_all = ["urls", "tag", "prefix", "pattern", "host", "all"]
    )]
    pub new_token: Option<String>,
}

/// No upstream is asked, and nothing is counted, unless --ask is given. The request is that of a visitor who
/// has never been here, with the fields that -H gives.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct ExplainArgs {
    /// The URL of the request; with --audit, those of the pages
    #[arg(value_name = "URL", group = "what", conflicts_with_all = ["search", "tag", "entry"])]
    pub urls: Vec<String>,
    /// A field of the request, such as `Cookie: lang=de`; may be given more than once
    #[arg(short = 'H', long = "header", value_name = "FIELD", conflicts_with_all = ["search", "tag", "entry"])]
    pub fields: Vec<String>,
    /// Its method [default: GET]
    #[arg(short = 'X', long, value_name = "METHOD", conflicts_with_all = ["search", "tag", "entry"])]
    pub method: Option<String>,
    /// Send the request to the application as well, and show its answer
    #[arg(long, conflicts_with_all = ["search", "tag", "entry"])]
    pub ask: bool,
    /// Have the application make the page some thirty times with one thing altered (language, browser, Referer,
    /// cookies, address), past the cache, and show the parts of a request that it depends on
    #[arg(long = "try", conflicts_with_all = ["search", "tag", "entry"])]
    pub tries: bool,
    /// The client's address, as `allow`, `geo`, limits and the rights to purge see it [default: 127.0.0.1, as for
    /// a request that is made here]
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["search", "tag", "entry"])]
    pub from: Option<IpAddr>,
    /// List stored responses with this text in their host, path or arguments
    #[arg(long, value_name = "TEXT", group = "what", conflicts_with = "entry")]
    pub search: Option<String>,
    /// List stored responses with this tag
    #[arg(long, value_name = "TAG", group = "what", conflicts_with = "entry")]
    pub tag: Option<String>,
    /// List at most this number of them [default: 100]
    #[arg(long, value_name = "N", conflicts_with = "urls")]
    pub limit: Option<usize>,
    /// Continue a list after its last place, which the list names
    #[arg(long, value_name = "PLACE", conflicts_with = "urls")]
    pub after: Option<String>,
    /// Show the stored response with this id, which a list names
    #[arg(long, value_name = "ID", group = "what")]
    pub entry: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerArgs,
    // The last, since its heading is that of all that follow.
    #[command(flatten)]
    pub audit: AuditArgs,
}

/// The server asks for each page like a visitor without cookies. Visitors come first: while they wait for PHP,
/// this command waits as well.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct WarmArgs {
    /// URLs, URLs of sitemaps that end with .xml or .xml.gz, files with a sitemap or with one URL in
    /// each line, or - for standard input
    #[arg(value_name = "SITEMAP|FILE|URL", group = "what")]
    pub sources: Vec<String>,
    /// The URL of a sitemap, if it does not end with .xml or .xml.gz
    #[arg(long, value_name = "URL", group = "what")]
    pub sitemap: Vec<String>,
    /// How many pages to ask for at the same time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub jobs: u8,
    /// Print a line of JSON for each page, and one at the end
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Keys: q quits; c lists the pages that cost most, w those that are requested most, n those that are most
/// often not stored, p the clients that use most of PHP's time; s sorts zones and upstreams by use or by name.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct TopArgs {
    /// Print one table after a second, and exit
    #[arg(long, conflicts_with = "json")]
    pub once: bool,
    /// Print all numbers as JSON, and exit
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Says of each fault what it is, why it matters and what mends it. Exit codes: 0 no faults, or only notes;
/// 3 warnings; 4 errors.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct DoctorArgs {
    /// The configuration [default: that of mayfly -c, if there is one]
    #[arg(short = 'c', value_name = "FILE")]
    pub conf: Option<PathBuf>,
    /// Folder in which relative paths of the configuration begin
    #[arg(short = 'p', value_name = "FOLDER")]
    pub prefix_folder: Option<PathBuf>,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
    /// Folder with /proc, /sys, /etc and the document roots
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub root: Option<PathBuf>,
}

/// The engine is asked that the configuration names, once more after a second: a node that renews its lease without
/// applying purges makes all of them wait.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct NodesArgs {
    /// Expel this node, by its name or number: it answers nothing from memory any more, and purges wait for it for
    /// the rest of its lease only. It comes back when its server is restarted
    #[arg(long, value_name = "NODE")]
    pub expel: Option<String>,
    /// The configuration [default: that of mayfly -c]
    #[arg(short = 'c', value_name = "FILE")]
    pub conf: Option<PathBuf>,
    /// Folder in which relative paths of the configuration begin
    #[arg(short = 'p', value_name = "FOLDER")]
    pub prefix_folder: Option<PathBuf>,
    /// Print the nodes as JSON
    #[arg(long, conflicts_with = "expel")]
    pub json: bool,
}

/// For cron, command-line tools and deployment, as in `mayfly run -- wp cron event run --due-now`. The command and its
/// processes are given the library that Mayfly starts PHP with: a server that learns pages gets a report of each write
/// before the database does, and once more before the program has its answer. Root informs all servers that root
/// started, and the account of a pool those of its pools: write `mayfly run` behind sudo, which drops the library.
/// Processes that do not load it are named, and no page is kept until the command ends. If no server learns, a line
/// reports it, and the command runs all the same. Exit codes are the command's; 127 it is not found; 126 it cannot be
/// started; 128 and more: it was ended by the signal of that number less 128.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct RunArgs {
    /// The command and its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<OsString>,
}

/// The operation on such a folder.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum CacheWord {
    /// Read all records and journals, and report which are whole, void, damaged or of others; changes nothing. Exit
    /// codes: 0 all is whole; 1 something is damaged, or the folder cannot be read
    Verify {
        /// The folder: mayfly-NAME below the path of the zone
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// The definition that help, manual pages and completions are made from.
pub fn definition() -> clap::Command {
    <Line as clap::CommandFactory>::command()
}

/// Whether an argument is one of the words, or an option in the place of one.
pub fn is_word(word: &str) -> bool {
    WORDS.contains(&word) || matches!(word, "--help" | "--version")
}

/// Returns the arguments, with `--dashboard ADDR:PORT` as one of them. The word behind `--dashboard` may as well be
/// the folder of the site.
fn with_joined_place(arguments: &[OsString]) -> Vec<OsString> {
    let is_place = |text: &str| {
        let port = text.rsplit(':').next().unwrap_or(text);
        !text.contains('/') && port.parse::<u16>().is_ok()
    };
    let mut joined: Vec<OsString> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match (joined.last_mut(), argument.to_str()) {
            (Some(last), Some(text)) if last == "--dashboard" && is_place(text) => {
                last.push("=");
                last.push(text);
            }
            _ => joined.push(argument.clone()),
        }
    }
    joined
}

/// Reads a line that begins with a word (without the program's name).
///
/// # Errors
/// The message of clap about a mistake.
pub fn parse(arguments: &[OsString]) -> Result<WordResult, String> {
    if arguments.first().is_some_and(|word| word == "--version") {
        return Ok(WordResult::Word(Word::Version));
    }
    let arguments = match arguments.first().is_some_and(|word| word == "run") {
        // They are another program's.
        true => arguments.to_vec(),
        false => with_joined_place(arguments),
    };
    let line = std::iter::once(OsString::from("mayfly")).chain(arguments.iter().cloned());
    match Line::try_parse_from(line) {
        Ok(Line { word }) => Ok(WordResult::Word(word)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp => Ok(WordResult::Text(error.to_string())),
            ErrorKind::UnknownArgument => Err(with_tip(error.to_string(), &arguments)),
            _ => Err(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cli::serve_args::Workers;

    fn run(line: &str) -> Result<WordResult, String> {
        let arguments: Vec<OsString> = line.split(' ').map(Into::into).collect();
        parse(&arguments)
    }

    /// The arguments of a word.
    macro_rules! args {
        ($word:ident, $line:expr) => {
            match run($line) {
                Ok(WordResult::Word(Word::$word(args))) => args,
                other => panic!("{}: {other:?}", $line),
            }
        };
    }

    #[test]
    fn definition_of_the_words_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn serve_has_careful_defaults() {
        let args = args!(Serve, "serve site");
        assert_eq!(args.dir, PathBuf::from("site"));
        assert!(args.listen.is_empty() && args.domain.is_empty());
        assert_eq!(args.ttl, None);
        assert!(!args.wordpress_plugin);
        assert_eq!(args.workers, Workers::Auto);
        assert!(!args.print_config);
    }

    #[test]
    fn serve_takes_what_it_is_told() {
        let line = "serve site --listen 127.0.0.1:1 --listen [::1]:2 --ttl 200ms --workers 4 --php /x --print-config";
        let args = args!(Serve, line);
        assert_eq!(args.listen, ["127.0.0.1:1", "[::1]:2"]);
        assert_eq!(args.ttl, Some(Duration::from_millis(200)));
        assert_eq!(args.workers, Workers::Count(4));
        assert_eq!(args.php, Some("/x".into()));
        assert!(args.print_config);
    }

    #[test]
    fn serve_tells_the_place_of_the_dashboard_from_the_folder() {
        for (line, place) in [
            ("serve site", None),
            ("serve site --dashboard", Some("127.0.0.1:8090")),
            ("serve --dashboard site", Some("127.0.0.1:8090")),
            ("serve site --dashboard 127.0.0.1:1", Some("127.0.0.1:1")),
            ("serve --dashboard [::1]:1 site", Some("[::1]:1")),
            ("serve site --dashboard=9000", Some("9000")),
            ("serve site --dashboard 9000 --tls", Some("9000")),
        ] {
            let args = args!(Serve, line);
            assert_eq!(args.dir, PathBuf::from("site"), "{line}");
            assert_eq!(args.dashboard.as_deref(), place, "{line}");
        }
        let args = args!(Serve, "serve --dashboard http://127.0.0.1:81");
        assert_eq!(args.dir, PathBuf::from("http://127.0.0.1:81"));
    }

    #[test]
    fn purge_takes_targets_of_all_kinds() {
        let line = "purge https://a/ /b --tag t --tag u --prefix p --pattern q --host h --all --soft --dry-run --json -c f";
        let args = args!(Purge, line);
        assert_eq!(args.urls, ["https://a/", "/b"]);
        assert_eq!(args.tag, ["t", "u"]);
        assert_eq!(
            (&*args.prefix[0], &*args.pattern[0], &*args.host[0]),
            ("p", "q", "h")
        );
        assert!(args.all && args.soft && args.dry_run && args.json);
        assert_eq!(args.server.conf, Some("f".into()));
    }

    #[test]
    fn explain_takes_a_request_or_a_search() {
        let line = "explain http://a/ -H Cookie:a=b -H X:y -X HEAD --ask --json -c f";
        let args = args!(Explain, line);
        assert_eq!(args.urls, ["http://a/"]);
        assert_eq!(args.fields, ["Cookie:a=b", "X:y"]);
        assert_eq!(args.method.as_deref(), Some("HEAD"));
        assert!(args.ask && args.json && args.from.is_none());
        assert_eq!(args.server.conf, Some("f".into()));
        let args = args!(Explain, "explain http://a/ --from 2001:db8::1");
        assert_eq!(args.from, "2001:db8::1".parse().ok());
        let args = args!(Explain, "explain --search /a --tag t --limit 5");
        assert_eq!(args.search.as_deref(), Some("/a"));
        assert_eq!((args.tag.as_deref(), args.limit), (Some("t"), Some(5)));
    }

    #[test]
    fn explain_audits_several_pages() {
        let line = "explain --audit http://a/ http://a/b --sitemap http://a/s.xml --connect unix:s --pages 5 --json";
        let args = args!(Explain, line);
        assert_eq!(args.urls, ["http://a/", "http://a/b"]);
        assert!(args.audit.audit && args.json && !args.audit.plain_address);
        assert_eq!(args.audit.sitemap, ["http://a/s.xml"]);
        assert_eq!(args.audit.connect.as_deref(), Some("unix:s"));
        assert_eq!(args.audit.pages, 5);
        assert_eq!(args.audit.timeout, Duration::from_secs(10));
        let line = "explain --audit --sitemap http://a/s.xml";
        assert!(matches!(run(line), Ok(WordResult::Word(Word::Explain(_)))));
    }

    #[test]
    fn warm_takes_sources_of_all_kinds() {
        let line = "warm https://a/ pages.txt - --sitemap https://a/?sitemap --jobs 4 --json -c f";
        let args = args!(Warm, line);
        assert_eq!(args.sources, ["https://a/", "pages.txt", "-"]);
        assert_eq!(args.sitemap, ["https://a/?sitemap"]);
        assert_eq!((args.jobs, args.json), (4, true));
        assert_eq!(args.server.conf, Some("f".into()));
    }

    #[test]
    fn advise_takes_logs_and_their_format() {
        let args = args!(Advise, "advise a b.gz --format $msec --plain-keys --json");
        assert_eq!(args.logs, [PathBuf::from("a"), PathBuf::from("b.gz")]);
        assert_eq!(args.format.as_deref(), Some("$msec"));
        assert!(args.plain_keys && args.json);
    }

    #[test]
    fn bench_is_bounded_and_stays_on_this_machine_by_default() {
        let args = args!(Bench, "bench http://a/ 3@http://a/b");
        assert_eq!(args.urls, ["http://a/", "3@http://a/b"]);
        assert_eq!(args.duration, Duration::from_secs(10));
        assert!(!args.yes_this_is_mine && args.rate.is_none());
        let args = args!(
            Bench,
            "bench http://a/ --rate 5.5 --ramp 2s --cookies -H A:b --compare http://b/"
        );
        assert_eq!((args.rate, args.ramp), (Some(5.5), Duration::from_secs(2)));
        assert!(args.cookies && args.header == ["A:b"] && args.compare.is_some());
    }

    #[test]
    fn run_takes_a_command_with_all_its_arguments() {
        for line in [
            "run -- wp --dashboard a:1 -c x --",
            "run wp --dashboard a:1 -c x --",
        ] {
            let args = args!(Run, line);
            assert_eq!(args.command, ["wp", "--dashboard", "a:1", "-c", "x", "--"]);
        }
    }

    #[test]
    fn doctor_takes_a_configuration() {
        let args = args!(Doctor, "doctor -c a -p b --json --root c");
        assert_eq!(
            (args.conf, args.prefix_folder),
            (Some("a".into()), Some("b".into()))
        );
        assert!(args.json && args.root == Some("c".into()));
        assert!(matches!(
            run("doctor"),
            Ok(WordResult::Word(Word::Doctor(_)))
        ));
    }

    #[test]
    fn words_used_wrongly_say_what_was_expected() {
        let cases = [
            ("serve", "<DIR|URL>"),
            ("serve a --ttl soon", "expected a time"),
            ("serve a --workers 0", "expected a number from 1"),
            ("serve a --bogus", "--bogus"),
            ("check", "<FILE>"),
            ("check --in-place a", "--fix"),
            (
                "check --format yaml a",
                "[possible values: text, json, sarif]",
            ),
            ("convert", "<FILE>"),
            ("convert --php a;b c", "unix:/run/php"),
            ("explain", "URL|--search"),
            ("explain --ask --tag a", "cannot be used with"),
            ("explain --from ::1 --tag a", "cannot be used with"),
            ("explain http://a/ --from here", "--from"),
            ("explain http://a/ --tag a", "cannot be used with"),
            ("explain --audit", "URL|--search"),
            ("explain --audit http://a/ --ask", "cannot be used with"),
            ("explain --audit http://a/ -c f", "cannot be used with"),
            ("explain --sitemap http://a/s.xml", "--audit"),
            ("explain --audit http://a/ --pages 0", "--pages"),
            ("purge", "<URL|--tag"),
            ("purge --soft", "<URL|--tag"),
            ("purge --new-token a --all", "cannot be used with"),
            ("purge --all -c a --socket b", "cannot be used with"),
            ("warm", "SITEMAP|FILE|URL"),
            ("warm a --jobs 0", "--jobs"),
            ("warm a --jobs 9", "--jobs"),
            ("top --once --json", "cannot be used with"),
            ("advise", "<LOG>"),
            ("run", "<COMMAND>"),
            ("bench", "<URL>"),
            ("bench http://a --rate 0", "expected a number"),
            ("bench http://a --rate 5 --replay l", "cannot be used with"),
            ("bench http://a --connections 0", "--connections"),
        ];
        for (line, part) in cases {
            match run(line) {
                Err(text) => assert!(text.contains(part), "{line}: {text}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn help_is_there_for_each_word() {
        for line in [
            "help",
            "--help",
            "help serve",
            "serve --help",
            "check --help",
            "convert --help",
            "explain --help",
            "purge --help",
            "warm --help",
            "top --help",
            "advise --help",
            "bench --help",
            "doctor --help",
            "upgrade --help",
            "run --help",
        ] {
            assert!(matches!(run(line), Ok(WordResult::Text(_))), "{line}");
        }
        for line in ["version", "--version"] {
            assert_eq!(run(line), Ok(WordResult::Word(Word::Version)), "{line}");
        }
    }
}
