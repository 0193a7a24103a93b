//! `mayfly upgrade`: has the running server replaced by the program that lies at its path now, and waits until that
//! one serves.

use std::io::{self, Write};

use control::{ClientError, Command, client, command};

use crate::commands::running_server::{explained, find};
use command_line::ServerArgs;
use command_line::{Exit, complain, printable};

pub fn run(args: &ServerArgs) -> Exit {
    let event_loop = match crate::processes::event_loop::build() {
        Ok(event_loop) => event_loop,
        Err(error) => return complain(Exit::Refused, &format!("could not start: {error}")),
    };
    event_loop.block_on(async {
        let path = match find(args, &[]).await {
            Ok(path) => path,
            Err((exit, message)) => return complain(exit, &message),
        };
        match client::command(&path, Command::Upgrade).await {
            Ok(_) => {}
            Err(ClientError::Refused(refusal)) if refusal.status == command::FAILED => {
                for line in refusal.message.lines() {
                    let line: String = line.chars().map(printable).collect();
                    complain(Exit::Refused, &line);
                }
                return Exit::Refused;
            }
            Err(error) => {
                let (exit, message) = explained(&path, &error);
                return complain(exit, &message);
            }
        }
        // The new one answers by now.
        let text = match client::version(&path).await {
            Ok(new) => format!("Process {} serves, version {}.\n", new.pid, new.version),
            Err(_) => "The new program serves.\n".to_owned(),
        };
        let _ = io::stdout().write_all(text.as_bytes());
        Exit::Done
    })
}
