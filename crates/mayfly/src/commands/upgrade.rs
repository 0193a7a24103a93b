//! `mayfly upgrade`: has the running server replaced by the program that lies at its path now, and waits until that
//! one serves.

use control::{ClientError, Command, client, command};

use crate::commands::running_server::{self, explained, find};
use command_line::{Exit, ServerArgs, complain, print, printable};

pub fn run(args: &ServerArgs) -> Exit {
    running_server::run(async {
        let path = find(args, &[]).await?;
        match client::command(&path, Command::Upgrade).await {
            Ok(_) => {}
            Err(ClientError::Refused(refusal)) if refusal.status == command::FAILED => {
                for line in refusal.message.lines() {
                    let line: String = line.chars().map(printable).collect();
                    complain(Exit::Refused, &line);
                }
                return Ok(Exit::Refused);
            }
            Err(error) => return Err(explained(&path, &error)),
        }
        // The new one answers by now.
        let text = match client::version(&path).await {
            Ok(new) => format!("Process {} serves, version {}.\n", new.pid, new.version),
            Err(_) => "The new program serves.\n".to_owned(),
        };
        Ok(print(&text))
    })
}
