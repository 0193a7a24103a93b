//! State that a request has only if the configuration, or an upstream's response, needs more than
//! usual: fields that are carried along, facts of subrequests. Most requests have
//! none of it, and pay for a pointer.

use std::ops::{Deref, DerefMut};

use http_semantics::Fields;

use crate::exchange::own_visit::OwnVisit;
use upstream::Class;

/// Nothing until it is written to; reads like [`Extra`].
#[derive(Default)]
pub struct Extras(Option<Box<Extra>>);

#[derive(Default)]
pub struct Extra {
    /// Variables that `.htaccess` files set for scripts.
    pub script_variables: Vec<(String, Vec<u8>)>,
    pub carried: CarriedToResponse,
    /// The URL that a `proxy_pass` with variables leads to.
    pub proxy_url: Option<Box<ProxyUrl>>,
    /// The class of the request or task that its upstream requests are made for.
    pub class: Class,
    /// The server asks itself.
    pub own_visit: Option<Box<OwnVisit>>,
}

/// Facts from earlier stages for the response.
#[derive(Default)]
pub struct CarriedToResponse {
    /// Fields of the response that X-Accel-Redirect replaced, to be sent on.
    pub fields: Fields,
    /// Fields of an error that its page is to carry (`WWW-Authenticate`).
    pub error_fields: Fields,
    pub accel_charset: Option<Vec<u8>>,
    /// The rules of `.htaccess` files for the response to this request.
    pub rules: Option<Box<htaccess::ResponseRules>>,
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

static NOTHING: Extra = Extra {
    script_variables: Vec::new(),
    carried: CarriedToResponse {
        fields: Fields::new(),
        error_fields: Fields::new(),
        accel_charset: None,
        rules: None,
    },
    proxy_url: None,
    class: Class::Visitor,
    own_visit: None,
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

    /// Sets the URL that a `proxy_pass` with variables leads to; `None`: it has no variables, or none is meant.
    pub fn set_proxy_url(&mut self, url: Option<Box<ProxyUrl>>) {
        if url.is_some() || self.0.is_some() {
            self.proxy_url = url;
        }
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
                proxy_url: own.proxy_url.clone(),
                class: own.class,
                ..Extra::default()
            })
        }))
    }
}
