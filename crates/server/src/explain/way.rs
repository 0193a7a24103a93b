//! The way of a request through all stages but the content, and where it comes out.

use std::net::IpAddr;

use control::explain::{MAX_FIELDS, Plan, PlanKind};
use control::{ExplainRequest, Refusal};
use site::{Builtin, Content, Part, PassTarget, Protocol, Template, Variable};

use super::turn;
use crate::content::pass;
use crate::content::through_cache::outlook::{Outlook, outlook};
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::handled::StageEnd;
use crate::exchange::own_visit::{NotAsked, Purpose};
use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::pipeline;
use crate::service::own_visit::{self, AskedUrl, Unaskable};
use crate::warming;

/// A request after the dry run of its stages.
pub struct Way {
    pub request: Box<Request>,
    pub plan: Plan,
    /// The cache's part, where an upstream would be asked or the cache answers.
    pub outlook: Option<Outlook>,
}

/// The request to explain, and others like it.
#[derive(Clone)]
pub struct Question {
    pub url: String,
    pub method: String,
    pub from: Option<IpAddr>,
    pub fields: Vec<(String, Vec<u8>)>,
}

impl Question {
    /// The fields that were given, beside those of a browser that has never been here.
    ///
    /// # Errors
    /// There are too many.
    pub fn of(asked: &ExplainRequest) -> Result<Question, Refusal> {
        if asked.fields.len() > MAX_FIELDS {
            let message = format!("expected at most {MAX_FIELDS} fields");
            return Err(Refusal::field("fields", message));
        }
        let is_given = |name: &str| {
            let mut given = asked.fields.iter();
            given.any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        let given = asked.fields.iter();
        let given = given.map(|(name, value)| (name.clone(), value.clone().into_bytes()));
        let usual = warming::browser_fields().into_iter();
        Ok(Question {
            url: asked.url.clone(),
            method: asked.method.clone().unwrap_or_else(|| "GET".to_owned()),
            from: asked.from,
            fields: usual
                .filter(|(name, _)| !is_given(name))
                .chain(given)
                .collect(),
        })
    }

    /// The request.
    ///
    /// # Errors
    /// Why there is no such request.
    pub fn request(
        &self,
        configuration: &ConfigurationHandle,
        purpose: Purpose,
    ) -> Result<Box<Request>, Unaskable> {
        let asked = AskedUrl {
            url: &self.url,
            method: &self.method,
            client: self.from,
            fields: self.fields.clone(),
        };
        own_visit::of_url(configuration, &asked, purpose)
    }
}

/// Takes a request through the stages.
///
/// # Errors
/// Why there is no such request.
pub async fn walk(
    configuration: &ConfigurationHandle,
    question: &Question,
) -> Result<Way, Unaskable> {
    let mut request = question.request(configuration, Purpose::Explain)?;
    let reply = pipeline::serve_internal(&mut request).await;
    let visit = request.own_visit.as_ref();
    let is_at_content = visit.is_some_and(|visit| visit.not_asked.get() == Some(&NotAsked::Dry));
    if is_at_content {
        return Ok(at_content(configuration, request));
    }
    let plan = match reply {
        None => plan(PlanKind::Nothing, ""),
        Some(reply) => {
            let status = request.delivery.status_of(&reply.head);
            let is_file = matches!(request.settings().content, Content::Files) && status < 300;
            let plan = match is_file {
                true => plan(PlanKind::File, &text_of(&request, Builtin::RequestFilename)),
                false => plan(PlanKind::Answer, ""),
            };
            Plan {
                status: Some(status),
                ..plan
            }
        }
    };
    Ok(Way::new(request, plan))
}

impl Way {
    /// The cache has no part in it.
    fn new(request: Box<Request>, plan: Plan) -> Way {
        Way {
            request,
            plan,
            outlook: None,
        }
    }
}

fn plan(kind: PlanKind, to: &str) -> Plan {
    Plan {
        kind,
        to: to.to_owned(),
        status: None,
        turn: None,
    }
}

fn at_content(configuration: &ConfigurationHandle, mut request: Box<Request>) -> Way {
    let settings = request.settings_held();
    let pass = match &settings.content {
        Content::Pass(pass) => pass,
        content => {
            let plan = match content {
                Content::Handler(name) => plan(PlanKind::Handler, name),
                Content::Dashboard(_) => plan(PlanKind::Handler, "dashboard"),
                _ => plan(PlanKind::PurgeApi, ""),
            };
            return Way::new(request, plan);
        }
    };
    match pass::aim(&request, pass) {
        Ok(url) => request.route.proxy_url = url,
        Err(handled) => {
            let status = match handled {
                StageEnd::Status(status) => Some(status),
                _ => None,
            };
            let plan = plan(PlanKind::Answer, "");
            return Way::new(request, Plan { status, ..plan });
        }
    }
    let kind = match &pass.protocol {
        Protocol::FastCgi(_) => PlanKind::Fastcgi,
        Protocol::Http(_) => PlanKind::Http,
        Protocol::Memcached(_) => PlanKind::Memcached,
    };
    let to = upstream_name(&request, &pass.target);
    let outlook = outlook(&mut request, configuration, pass);
    let turn = turn::part(&request, pass);
    let plan = plan(kind, &to);
    Way {
        outlook: Some(outlook),
        ..Way::new(request, Plan { turn, ..plan })
    }
}

fn upstream_name(request: &Request, target: &PassTarget) -> String {
    match target {
        PassTarget::Group(id) => request.configuration.site.http.groups[id.0].name.clone(),
        PassTarget::Variable(template) => match &request.route.proxy_url {
            Some(url) => url.group.clone(),
            None => {
                let name = variable::evaluate(request, template);
                String::from_utf8_lossy(&name).into_owned()
            }
        },
    }
}

/// The value of a variable.
pub fn text_of(request: &Request, builtin: Builtin) -> String {
    let template = Template {
        parts: vec![Part::Variable(Variable::Builtin(builtin))],
    };
    let value = variable::evaluate(request, &template);
    String::from_utf8_lossy(&value).into_owned()
}
