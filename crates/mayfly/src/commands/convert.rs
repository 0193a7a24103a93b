//! `mayfly convert`: Apache's virtual hosts as servers of Mayfly, and notes about `.htaccess` files. Files are read
//! and written here; the translation is `apache-conf`'s.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use apache_conf::{
    Conversion, HtaccessFile, NoteKind, Options, convert_htaccess, convert_servers, is_of_servers,
};
use system_error::SystemError;

use crate::cli::ConvertArgs;
use command_line::{Exit, complain, print};

/// A longer file was not written by hand.
const MAX_BYTES: u64 = 4 << 20;

/// Files of one `Include`.
const MAX_INCLUDED: usize = 1000;

/// A text with its path.
struct ReadFile {
    path: PathBuf,
    text: String,
}

pub fn run(args: &ConvertArgs) -> Exit {
    let files: Result<Vec<ReadFile>, String> = args.files.iter().map(|it| read(it)).collect();
    let conversion = files.and_then(|files| converted(args, &files));
    let conversion = match conversion {
        Ok(conversion) => conversion,
        Err(message) => return complain(Exit::Refused, &message),
    };
    if let Err(message) = write(args.output.as_deref(), &conversion.text) {
        return complain(Exit::Refused, &message);
    }
    summarize(&conversion)
}

fn read(path: &Path) -> Result<ReadFile, String> {
    let mut bytes = Vec::new();
    let result = match path.as_os_str() == "-" {
        true => io::stdin()
            .lock()
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes),
        false => {
            std::fs::File::open(path).and_then(|it| it.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        }
    };
    result.map_err(|error| format!("{}: {}", path.display(), SystemError(&error)))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!(
            "{}: more than {} MB",
            path.display(),
            MAX_BYTES >> 20
        ));
    }
    Ok(ReadFile {
        path: path.to_owned(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

fn converted(args: &ConvertArgs, files: &[ReadFile]) -> Result<Conversion, String> {
    let options = Options {
        php: args.php.clone(),
    };
    if let [file] = files
        && is_of_servers(&file.text)
    {
        let name = file.path.display().to_string();
        let load = |pattern: &str| included(&file.path, pattern);
        return Ok(convert_servers(&name, &file.text, &load, &options));
    }
    if let Some(file) = files.iter().find(|it| is_of_servers(&it.text)) {
        let file = file.path.display();
        return Err(format!(
            "{file} is the configuration of a server: translate it alone"
        ));
    }
    let names: Vec<String> = files
        .iter()
        .map(|it| it.path.display().to_string())
        .collect();
    let htaccess: Vec<HtaccessFile<'_>> = files
        .iter()
        .zip(&names)
        .map(|(file, name)| HtaccessFile {
            name,
            text: &file.text,
        })
        .collect();
    Ok(convert_htaccess(&htaccess, &options))
}

/// The files that an `Include` means: below Debian's folder of Apache, or the one around the file's own, where the path is
/// relative.
fn included(from: &Path, pattern: &str) -> Result<Vec<(String, String)>, String> {
    let folder = from.parent().unwrap_or(Path::new(""));
    let bases = [Path::new("/etc/apache2"), folder, &folder.join("..")];
    let pattern = match Path::new(pattern).is_absolute() {
        true => PathBuf::from(pattern),
        false => {
            let is_there = |base: &&&Path| base.join(pattern).parent().is_some_and(Path::is_dir);
            let base = bases.iter().find(is_there).unwrap_or(&bases[0]);
            base.join(pattern)
        }
    };
    let pattern = match pattern.is_dir() {
        true => pattern.join("*"),
        false => pattern,
    };
    let pattern = pattern.to_string_lossy();
    let paths = glob::glob(&pattern).map_err(|error| error.to_string())?;
    let mut files = Vec::new();
    for path in paths.take(MAX_INCLUDED) {
        let path = path.map_err(|error| error.to_string())?;
        if path.is_file() {
            files.push((path.display().to_string(), read(&path)?.text));
        }
    }
    Ok(files)
}

fn write(output: Option<&Path>, text: &str) -> Result<(), String> {
    let Some(path) = output else {
        print(text);
        return Ok(());
    };
    let file = std::fs::File::create_new(path);
    let written = file.and_then(|mut it| it.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{}: it is there already; give another name", path.display())
        }
        _ => format!("{}: {}", path.display(), SystemError(&error)),
    })
}

/// Prints a summary of the lines, and returns the exit code.
fn summarize(conversion: &Conversion) -> Exit {
    let mut stderr = io::stderr().lock();
    for mistake in &conversion.mistakes {
        let (file, line) = (&mistake.place.file, mistake.place.line);
        let _ = writeln!(stderr, "error: {file}:{line}: {}", mistake.message);
    }
    let left_out = conversion.count(NoteKind::LeftOut);
    let (others, guards) = (
        conversion.count(NoteKind::NotTranslated),
        conversion.count(NoteKind::Unsafe),
    );
    for note in conversion
        .notes
        .iter()
        .filter(|it| it.kind == NoteKind::Unsafe)
    {
        let _ = writeln!(stderr, "error: {note}");
    }
    let _ = writeln!(
        stderr,
        "{} lines: {} obeyed or translated, {left_out} left out without a loss, {} not translated{}",
        conversion.lines,
        conversion.translated(),
        others + guards,
        match guards {
            0 => String::new(),
            count => format!(", {count} of which keep visitors out"),
        }
    );
    if conversion.refuses_scripts {
        let _ = writeln!(
            stderr,
            "note: scripts of PHP are refused where no line says what runs them; --php unix:/run/php/php-fpm.sock does"
        );
    }
    match (conversion.mistakes.is_empty(), guards, others) {
        (false, ..) => Exit::Refused,
        (true, 1.., _) => Exit::Errors,
        (true, 0, 1..) => Exit::Warnings,
        (true, 0, 0) => Exit::Done,
    }
}
