//! A page that the server asks the application for past the cache, and reads whole.

use std::sync::Arc;

use bytes::Bytes;
use guest_pages::MAX_BODY_BYTES;
use http_semantics::Target;
use http1::{HeadLimits, parse_head};
use transport::facts::ConnectionFacts;
use upstream::Class;

use crate::exchange::own_visit::{OwnVisit, Purpose};
use crate::exchange::request::{Method, Request};
use crate::exchange::request_route::TargetOrigin;
use crate::exchange::request_values::RequestValues;
use crate::exchange::subrequest;

/// A whole answer.
#[derive(Clone, Debug)]
pub struct WholeAnswer {
    pub status: u16,
    pub fields: Vec<(Bytes, Bytes)>,
    pub body: Vec<u8>,
}

impl WholeAnswer {
    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &value[..])
    }
}

/// Asks with another head as who comes by the same connection, from the same address. The path of its target is led
/// through the configuration anew. `None`: there was no whole answer.
pub async fn ask_as_client(request: &Request, head: Vec<u8>) -> Option<WholeAnswer> {
    let head = parse_head(head, &HeadLimits::OF_OWN_HEADS).ok()?;
    let made = request.internal_with(request.received.connection().clone(), head);
    ask(request, made, Class::Visitor).await
}

/// Asks with another head as a client who comes by `connection`, in the line of this class.
pub async fn ask_by(
    request: &Request,
    (connection, class): (Arc<ConnectionFacts>, Class),
    head: Vec<u8>,
) -> Option<WholeAnswer> {
    let head = parse_head(head, &HeadLimits::OF_OWN_HEADS).ok()?;
    let client = connection.peer;
    let mut made = request.internal_with(connection, head);
    made.received.set_client(client);
    ask(request, made, class).await
}

async fn ask(request: &Request, mut made: Box<Request>, class: Class) -> Option<WholeAnswer> {
    let merges = request.server().merge_slashes;
    let (path, args) = {
        let target = Target::parse(made.received.head().target(), merges).ok()?;
        (
            target.path.into_owned(),
            target.query.unwrap_or_default().to_vec(),
        )
    };
    (made.route.path, made.route.args) = (path, args);
    made.route.origin = TargetOrigin::Received;
    made.route.method = Method::Get;
    made.route.method_override = None;
    made.values = RequestValues::default();
    (made.route.proxy_url, made.route.script_variables) = (None, Vec::new());
    made.class = class;
    made.own_visit = Some(Box::new(OwnVisit::new(Purpose::Try)));
    made.enter_server(request.route.server());
    whole_answer(made, MAX_BODY_BYTES).await
}

/// Serves a request of the server's own, and reads the answer. `None`: there was no whole
/// answer, or one with a body of more than `most` bytes.
pub async fn whole_answer(mut made: Box<Request>, most: usize) -> Option<WholeAnswer> {
    let reply = subrequest::serve(&mut made).await?;
    let mut head = reply.head;
    head.unpack();
    let status = made.delivery.status_of(&head);
    let fields = head.fields.as_slice().to_vec();
    let mut body = Vec::new();
    let take = |piece: Bytes| body.extend_from_slice(&piece);
    let is_whole = subrequest::read_body(&made, reply.body, most, take).await;
    is_whole.then_some(WholeAnswer {
        status,
        fields,
        body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::request_values::put_value;
    use crate::test_site::TestSite;

    #[tokio::test]
    async fn another_head_is_answered_without_the_visitors_values() {
        let folder = tempfile::tempdir().unwrap();
        let http = "server { listen 127.0.0.1:8080; access_log off;\n\
                    location /a { set $mine a; return 204; }\n\
                    location /b { return 200 \"[$1$mine]\"; } }";
        let site = TestSite::new(folder, http);
        let request = site.request("GET /a", "", 0);
        request.values.write(|values| {
            values.captures.set(b"/a", [None, Some((1, 2))].into_iter());
            put_value(&mut values.slots, 0, Some(b"a".to_vec()));
        });
        let head = b"GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec();
        let answer = ask_as_client(&request, head).await.expect("an answer");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"[]"[..]));
    }
}
