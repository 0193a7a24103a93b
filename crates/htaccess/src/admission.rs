//! Access to a file: `Allow` and `Deny`, `Require`, names and passwords.

use crate::access::Source;
use crate::require::{Outcome, Question};
use crate::round::Round;
use crate::settings::Settings;
use crate::visit::{UserCheck, Verdict};

/// Lets the client in, with the name that was asked for, if one was.
///
/// # Errors
/// The refusal.
pub fn access(round: &Round<'_>, settings: &Settings) -> Result<Option<String>, Verdict> {
    if let Some(status) = settings.closed {
        return Err(Verdict::refused(status));
    }
    let method = round.method;
    let by_address = settings
        .access
        .as_ref()
        .is_none_or(|access| access.lets_in(method, |source| is_of(round, source)));
    let is_any = settings
        .access
        .as_ref()
        .is_some_and(|it| it.is_satisfied_by_any(method));
    match (by_address, is_any) {
        (true, true) => Ok(None),
        (false, false) => Err(Verdict::refused(403)),
        _ => requirements(round, settings),
    }
}

fn is_of(round: &Round<'_>, source: &Source) -> Option<bool> {
    let client = round.visit.client;
    Some(match source {
        Source::All => true,
        Source::Variable { name, is_negated } => round.variables.contains_key(name) != *is_negated,
        Source::Network(network) => network.contains(client?),
        Source::Loopback => client?.to_canonical().is_loopback(),
        Source::Host => return None,
    })
}

fn requirements(round: &Round<'_>, settings: &Settings) -> Result<Option<String>, Verdict> {
    let asks_password = settings
        .authentication
        .kind
        .as_deref()
        .filter(|it| *it != "none");
    let Some(require) = &settings.require else {
        return match asks_password {
            Some(_) => Err(Verdict::refused(500)),
            None => Ok(None),
        };
    };
    let method = round.method;
    let without = require.outcome(method, &mut |question| {
        answer(round, settings, question, None)
    });
    match without {
        Outcome::Granted => return Ok(None),
        Outcome::DeniedWithoutUser => {}
        _ => return Err(Verdict::refused(403)),
    }
    let challenge = || {
        Err(Verdict::Refused {
            status: 401,
            realm: settings.authentication.realm.clone(),
        })
    };
    let authentication = &settings.authentication;
    let is_basic =
        asks_password == Some("basic") && authentication.has_other_provider != Some(true);
    if !is_basic || authentication.realm.is_none() {
        return Err(Verdict::refused(500));
    }
    let Some(user_file) = &authentication.user_file else {
        return challenge();
    };
    let Some(user) = round.disk.user() else {
        return challenge();
    };
    match round.disk.check_user(user_file) {
        UserCheck::Right => {}
        UserCheck::Wrong => return challenge(),
        UserCheck::NoFile => return Err(Verdict::refused(500)),
    }
    let outcome = require.outcome(method, &mut |question| {
        answer(round, settings, question, Some(&user))
    });
    match outcome {
        Outcome::Granted => Ok(Some(user)),
        _ if authentication.refuses_with_403 == Some(true) => Err(Verdict::refused(403)),
        _ => challenge(),
    }
}

fn answer(
    round: &Round<'_>,
    settings: &Settings,
    question: &Question,
    user: Option<&str>,
) -> Outcome {
    let granted_if = |holds: bool| match holds {
        true => Outcome::Granted,
        false => Outcome::Denied,
    };
    match question {
        Question::All(is_granted) => granted_if(*is_granted),
        Question::Networks(networks) => match round.visit.client {
            Some(client) => granted_if(networks.iter().any(|it| it.contains(client))),
            None => Outcome::Unknown,
        },
        Question::Local => {
            let client = round.visit.client.map(|it| it.to_canonical());
            let is_own = client.is_some() && client == round.visit.server_address;
            granted_if(is_own || client.is_some_and(|it| it.is_loopback()))
        }
        Question::ValidUser | Question::Users(_) | Question::Groups(_) => {
            let Some(user) = user else {
                return Outcome::DeniedWithoutUser;
            };
            match question {
                Question::Users(names) => granted_if(names.iter().any(|it| it == user)),
                Question::Groups(groups) => {
                    let Some(file) = &settings.authentication.group_file else {
                        return Outcome::Denied;
                    };
                    let is_in = |group: &String| round.disk.is_in_group(file, group, user);
                    let found: Option<Vec<bool>> = groups.iter().map(is_in).collect();
                    found.map_or(Outcome::Unknown, |found| granted_if(found.contains(&true)))
                }
                _ => Outcome::Granted,
            }
        }
        Question::Variables(names) => {
            granted_if(names.iter().any(|it| round.variables.contains_key(it)))
        }
        Question::Methods(methods) => {
            let own = crate::names::as_counted(round.method);
            granted_if(methods.iter().any(|it| it == own))
        }
        Question::Expression(expression) => match expression.holds(&mut round.scope()) {
            Some(holds) => granted_if(holds),
            None => Outcome::Unknown,
        },
        Question::Unknown => Outcome::Unknown,
    }
}
