//! Responses whose bodies are put together from parts, in either language: a page of the client's
//! or a part of one, which may be put together itself.

use crate::exchange::reply::{Body, Reply};
use crate::exchange::request::Request;
use crate::respond::recoded_body::RecodedBody;
use crate::respond::{esi, recode, ssi};
use crate::transport::outbound::ArrivingBody;

/// The language of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Composition {
    Esi,
    Ssi,
}

impl Composition {
    /// `body` with its commands run as it is pulled, in the name of `request`.
    pub fn around(self, request: &mut Request, body: Body) -> Box<dyn ArrivingBody<Request>> {
        match self {
            Composition::Esi => Box::new(esi::Page::new(request, body)),
            Composition::Ssi => Box::new(ssi::Page::new(request, body)),
        }
    }
}

/// The body of a part as it goes into a page. `request` is the part's own.
pub fn part(request: &mut Request, mut reply: Box<Reply>) -> Box<dyn ArrivingBody<Request>> {
    let expander = recode::expand_part(request, &mut reply);
    let composition = match esi::choose(request, &mut reply) {
        true => Some(Composition::Esi),
        false => ssi::choose(request, &mut reply).then_some(Composition::Ssi),
    };
    let body = match expander {
        None => reply.body,
        expander => {
            let body = RecodedBody::around(reply.body.into_arriving(), expander);
            Body::Arriving(body)
        }
    };
    match composition {
        Some(composition) => composition.around(request, body),
        None => body.into_arriving(),
    }
}
