//! Informational responses of HTTP/1 ahead of the final one: 100 and 103 (RFC 9110 §15.2, RFC
//! 8297).

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http1::HeadWriter;

use crate::client::{Client, InformationalFuture};
use crate::stream::ClientStream;

/// The client at the other end of a connection that speaks HTTP/1.
pub struct Http1Client(pub Arc<ClientStream>);

impl Client for Http1Client {
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<bool> {
        self.0.poll_closed(cx)
    }

    fn inform<'a>(&'a self, status: u16, fields: &'a [(Bytes, Bytes)]) -> InformationalFuture<'a> {
        Box::pin(async move {
            let head = write(status, fields);
            self.0.write_all(&head).await?;
            Ok(head.len() as u64)
        })
    }
}

/// The response with this status and these fields.
///
/// Values with line breaks or NUL are refused by the writer and left out.
fn write(status: u16, fields: &[(Bytes, Bytes)]) -> Vec<u8> {
    let mut head = Vec::new();
    let mut writer = HeadWriter::new(&mut head, status);
    for (name, value) in fields {
        let _ = writer.put_field(name, value);
    }
    writer.finish();
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_informational_response_is_a_status_line_and_its_fields() {
        assert_eq!(write(100, &[]), b"HTTP/1.1 100 Continue\r\n\r\n");
        let link = (Bytes::from_static(b"Link"), Bytes::from_static(b"</a.css>"));
        assert_eq!(
            write(103, &[link]),
            b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
        );
    }
}
