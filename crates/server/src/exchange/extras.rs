//! State that a request has only if the configuration, or an upstream's response, needs more than
//! usual: captures, values that were set, limits, fields that are carried along. Most requests have
//! none of it, and pay for a pointer.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use http_semantics::Fields;
use parking_lot::Mutex;

use crate::exchange::captures::{Captures, Failures};
use crate::exchange::own_visit::OwnVisit;
use crate::exchange::page_budget::{FetchTurn, PageBudget};
use crate::exchange::request_turn::RequestTurn;
use crate::exchange::sharing_note::SharingNote;
use crate::exchange::tracing::Tracing;
use live_state::limit_conn::Guard;
use server_base::random;

/// Nothing until it is written to; reads like [`Extra`].
#[derive(Default)]
pub struct Extras(Option<Box<Extra>>);

/// Values by the number of their map, geo or slot; `None`: not set. It grows to the highest number
/// that was set.
pub type Values = Vec<Option<Vec<u8>>>;

#[derive(Default)]
pub struct Extra {
    pub values: RequestValues,
    pub limits: LimitNotes,
    pub carried: CarriedToResponse,
    pub fragments: FragmentFacts,
    pub request_id: Option<[u8; 16]>,
    /// The identifiers of `userid`.
    pub user_ids: Option<UserIds>,
    pub remote_user: Option<Vec<u8>>,
    pub path_info: Option<PathInfo>,
    /// The URL that a `proxy_pass` with variables leads to.
    pub proxy_url: Option<Box<ProxyUrl>>,
    pub turn: RequestTurn,
    /// The server asks itself.
    pub own_visit: Option<Box<OwnVisit>>,
    /// A refresh that this request has begun.
    pub refresh: Option<tokio::task::JoinHandle<()>>,
    /// The trace that it belongs to.
    pub tracing: Option<Box<Tracing>>,
    /// The place to note the response's sharing policy in.
    pub sharing_note: Option<Box<SharingNote>>,
    /// `post_action`: a request is made when the response has been sent.
    pub has_post_action: bool,
}

/// The identifiers of a client that has, or gets, the cookie of `userid`.
#[derive(Debug, Clone, Copy)]
pub struct UserIds {
    /// The identifier in the request's cookie.
    pub got: Option<[u8; 16]>,
    /// The identifier in the cookie that the response sets.
    pub given: Option<[u8; 16]>,
}

/// Values of variables that are found out once for a request.
#[derive(Default)]
pub struct RequestValues {
    pub captures: Captures,
    /// Patterns that gave up on the request.
    pub failures: Failures,
    /// Values written by `set` and named captures; `None`: not set.
    pub slots: Values,
    /// Results of maps, remembered for the request.
    pub maps: Values,
    /// Results of `geo` and `split_clients`, remembered for the request.
    pub geo: Values,
    pub splits: Values,
    /// Variables that `.htaccess` files set for scripts.
    pub of_script: Vec<(String, Vec<u8>)>,
}

/// The results of `limit_req` and `limit_conn`.
#[derive(Default)]
pub struct LimitNotes {
    pub req_status: &'static str,
    pub conn_status: &'static str,
    /// Connections counted by `limit_conn` until the request ends.
    pub guards: Vec<Guard>,
}

/// Facts from earlier stages for the response.
#[derive(Default)]
pub struct CarriedToResponse {
    /// Fields of the response that X-Accel-Redirect replaced, to be sent on.
    pub fields: Fields,
    /// Fields of an error that its page is to carry (`WWW-Authenticate`).
    pub error_fields: Fields,
    /// Fields behind the body of the response.
    pub trailers: Fields,
    /// Text of the `Server` field, where it is configured with variables.
    pub server_text: Option<Vec<u8>>,
    pub accel_charset: Option<Vec<u8>>,
    /// The rules of `.htaccess` files for the response to this request.
    pub rules: Option<Box<htaccess::ResponseRules>>,
}

/// The state of a page of fragments, or of a part of one.
#[derive(Default)]
pub struct FragmentFacts {
    /// Variables that SSI commands have set.
    pub ssi: Option<SharedSsiValues>,
    /// The budget that the page and its parts share.
    pub budget: Option<Arc<PageBudget>>,
    /// Its turn to ask an upstream.
    pub turn: Option<FetchTurn>,
}

/// The two captures of `fastcgi_split_path_info`.
#[derive(Debug, Clone)]
pub struct PathInfo {
    pub for_path: Vec<u8>,
    pub script: Vec<u8>,
    pub info: Vec<u8>,
}

/// The target of a `proxy_pass` with variables for one request.
#[derive(Debug, Clone, Default)]
pub struct ProxyUrl {
    /// Name of a group or `HOST:PORT` or `unix:PATH`.
    pub group: String,
    /// `$proxy_host` and `$proxy_port`
    pub host: Vec<u8>,
    pub port: Vec<u8>,
    pub uri: Option<Vec<u8>>,
}

/// Variables set by the commands of a page with server side includes; parts share them with the
/// page.
#[derive(Debug, Default)]
pub struct SsiValues {
    variables: HashMap<Vec<u8>, Vec<u8>>,
    /// Names and values together.
    bytes: usize,
    /// Groups of the last pattern that matched.
    pub groups: Vec<Option<Vec<u8>>>,
}

/// Names and values of a page's variables: a value is made of others, so each command may double it.
const MAX_SSI_VALUES_BYTES: usize = 1024 * 1024;

impl SsiValues {
    pub fn variable(&self, name: &[u8]) -> Option<&Vec<u8>> {
        self.variables.get(name)
    }

    /// Sets a variable; false if there is no room for it.
    pub fn set(&mut self, name: &[u8], value: Vec<u8>) -> bool {
        let before = self
            .variables
            .get(name)
            .map_or(0, |it| name.len() + it.len());
        let bytes = self.bytes - before + name.len() + value.len();
        if bytes > MAX_SSI_VALUES_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.variables.insert(name.to_vec(), value);
        true
    }
}

pub type SharedSsiValues = Arc<Mutex<SsiValues>>;

static NOTHING: Extra = Extra {
    values: RequestValues {
        captures: Captures::new(),
        failures: Failures::None,
        slots: Vec::new(),
        maps: Vec::new(),
        geo: Vec::new(),
        splits: Vec::new(),
        of_script: Vec::new(),
    },
    limits: LimitNotes {
        req_status: "",
        conn_status: "",
        guards: Vec::new(),
    },
    carried: CarriedToResponse {
        fields: Fields::new(),
        error_fields: Fields::new(),
        trailers: Fields::new(),
        server_text: None,
        accel_charset: None,
        rules: None,
    },
    fragments: FragmentFacts {
        ssi: None,
        budget: None,
        turn: None,
    },
    request_id: None,
    user_ids: None,
    remote_user: None,
    path_info: None,
    proxy_url: None,
    turn: RequestTurn {
        class: upstream::Class::Visitor,
        assessed: None,
    },
    own_visit: None,
    refresh: None,
    tracing: None,
    sharing_note: None,
    has_post_action: false,
};

impl Deref for Extras {
    type Target = Extra;

    fn deref(&self) -> &Extra {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for Extras {
    fn deref_mut(&mut self) -> &mut Extra {
        self.0.get_or_insert_default()
    }
}

impl Extras {
    /// Returns the state if there is any, for callers that only remove from it.
    pub fn given(&mut self) -> Option<&mut Extra> {
        self.0.as_deref_mut()
    }

    /// Is something of it carried to the head of the response?
    #[inline]
    pub fn reach_response(&self) -> bool {
        self.0.as_ref().is_some_and(|extra| {
            extra.carried.accel_charset.is_some()
                || extra.carried.rules.is_some()
                || !extra.carried.fields.is_empty()
                || !extra.carried.error_fields.is_empty()
        })
    }

    /// The value of `$request_id`, which the request and those made in its name share from now on.
    pub fn name_request(&mut self) -> [u8; 16] {
        *self.request_id.get_or_insert_with(random::bytes16)
    }

    /// Another path has another script.
    pub fn forget_path_info(&mut self) {
        if let Some(extra) = self.given() {
            extra.path_info = None;
        }
    }

    /// Returns the initial state of a request that the server makes itself for the same resource.
    pub fn inherited(&self) -> Extras {
        Extras(self.0.as_ref().map(|own| {
            Box::new(Extra {
                values: RequestValues {
                    captures: own.values.captures.clone(),
                    slots: own.values.slots.clone(),
                    of_script: own.values.of_script.clone(),
                    ..RequestValues::default()
                },
                fragments: FragmentFacts {
                    budget: own.fragments.budget.clone(),
                    ..FragmentFacts::default()
                },
                remote_user: own.remote_user.clone(),
                path_info: own.path_info.clone(),
                proxy_url: own.proxy_url.clone(),
                turn: RequestTurn {
                    class: own.turn.class,
                    assessed: own.turn.assessed.clone(),
                },
                tracing: own.tracing.as_ref().map(|it| Box::new(it.of_part())),
                ..Extra::default()
            })
        }))
    }
}

/// Puts a value among others.
pub fn put_value(values: &mut Values, at: usize, value: Option<Vec<u8>>) {
    if values.len() <= at {
        values.resize(at + 1, None);
    }
    values[at] = value;
}
