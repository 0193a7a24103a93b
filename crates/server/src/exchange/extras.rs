//! State that a request has only if the configuration, or an upstream's response, needs more than
//! usual: fields that are carried along, facts of subrequests. Most requests have
//! none of it, and pay for a pointer.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use http_semantics::Fields;
use parking_lot::Mutex;

use crate::exchange::own_visit::OwnVisit;
use crate::exchange::page_budget::{FetchTurn, PageBudget};
use crate::exchange::sharing_note::SharingNote;
use upstream::Class;

/// Nothing until it is written to; reads like [`Extra`].
#[derive(Default)]
pub struct Extras(Option<Box<Extra>>);

#[derive(Default)]
pub struct Extra {
    /// Variables that `.htaccess` files set for scripts.
    pub script_variables: Vec<(String, Vec<u8>)>,
    pub carried: CarriedToResponse,
    pub fragments: FragmentFacts,
    pub remote_user: Option<Vec<u8>>,
    /// The URL that a `proxy_pass` with variables leads to.
    pub proxy_url: Option<Box<ProxyUrl>>,
    /// The class of the request or task that its upstream requests are made for.
    pub class: Class,
    /// The server asks itself.
    pub own_visit: Option<Box<OwnVisit>>,
    /// A refresh that this request has begun.
    pub refresh: Option<tokio::task::JoinHandle<()>>,
    /// The place to note the response's sharing policy in.
    pub sharing_note: Option<Box<SharingNote>>,
    /// `post_action`: a request is made when the response has been sent.
    pub has_post_action: bool,
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
    script_variables: Vec::new(),
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
    remote_user: None,
    proxy_url: None,
    class: Class::Visitor,
    own_visit: None,
    refresh: None,
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

    /// Returns the initial state of a request that the server makes itself for the same resource.
    pub fn inherited(&self) -> Extras {
        Extras(self.0.as_ref().map(|own| {
            Box::new(Extra {
                script_variables: own.script_variables.clone(),
                fragments: FragmentFacts {
                    budget: own.fragments.budget.clone(),
                    ..FragmentFacts::default()
                },
                remote_user: own.remote_user.clone(),
                proxy_url: own.proxy_url.clone(),
                class: own.class,
                ..Extra::default()
            })
        }))
    }
}
