//! Variables are set: by conditions before access, and by `SetEnv` for scripts.

use std::sync::Arc;

use crate::environment::{EnvironmentCondition, Subject, Variables};
use crate::pattern::Groups;
use crate::rewriting::substituted;
use crate::round::Round;
use crate::settings::Settings;
use crate::values::Values as _;

/// `SetEnvIf` and its kin.
pub fn set_conditional_variables(round: &mut Round<'_>, conditions: &[Arc<EnvironmentCondition>]) {
    for condition in conditions {
        let Some(groups) = matched(round, condition) else {
            continue;
        };
        for (name, value) in &condition.sets {
            match value {
                Some(value) => {
                    let value = substituted(value.as_bytes(), &groups);
                    round.variables.insert(name.clone(), value);
                }
                None => drop(round.variables.remove(name)),
            }
        }
    }
}

fn matched(round: &Round<'_>, condition: &EnvironmentCondition) -> Option<Groups> {
    let pattern = condition.pattern.as_ref();
    match &condition.subject {
        Subject::Expression(expression) => {
            let mut scope = round.scope();
            // A condition that cannot be evaluated sets its variables, since conditions
            // of refusals ask for them.
            let holds = expression.holds(&mut scope).unwrap_or(true);
            holds.then_some(scope.groups)
        }
        Subject::Fields(names) => {
            let all = (round.visit.field_names)();
            let mut found = all
                .iter()
                .filter(|it| names.is_match(it.as_bytes()) == Ok(true));
            found.find_map(|name| {
                let value = (round.visit.field)(name)?;
                pattern?.groups(&value).ok()?
            })
        }
        Subject::Attribute(name) => {
            let value = match name.to_ascii_lowercase().as_str() {
                "remote_addr" | "remote_host" => round.variable("REMOTE_ADDR")?,
                "server_addr" => round.variable("SERVER_ADDR")?,
                "request_method" => round.variable("REQUEST_METHOD")?,
                "request_protocol" => round.variable("SERVER_PROTOCOL")?,
                "request_uri" => round.path.clone(),
                _ => match round.variables.get(name) {
                    Some(value) => value.clone(),
                    None => (round.visit.field)(name).unwrap_or_default(),
                },
            };
            pattern?.groups(&value).ok()?
        }
    }
}

/// `SetEnv`, which holds after all conditions.
pub fn set_script_variables(variables: &mut Variables, settings: &Settings) {
    for (name, value) in &settings.environment.set {
        match value {
            Some(value) => drop(variables.insert(name.clone(), value.clone().into_bytes())),
            None => drop(variables.remove(name)),
        }
    }
}
