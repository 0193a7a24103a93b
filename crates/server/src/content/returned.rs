//! `return`: a response that the rewrite program names.

use bytes::Bytes;

use crate::content::files;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::respond;

/// `return CODE [TEXT | URL]`.
pub fn handle(request: &Request, status: u16, value: Option<Vec<u8>>) -> StageEnd {
    match (status, value) {
        (444, _) => StageEnd::Close,
        (301 | 302 | 303 | 307 | 308, Some(location)) => {
            respond::redirect(request, status, location)
        }
        (204, None) => StageEnd::Reply(Box::new(Reply::new(status, b"", Bytes::new()))),
        (_, Some(text)) => typed(request, status, text.into()),
        (200..=299, None) => typed(request, status, Bytes::new()),
        (status, None) => StageEnd::Status(status),
    }
}

/// A body, even an empty one, has the type of its path.
fn typed(request: &Request, status: u16, text: Bytes) -> StageEnd {
    let content_type = files::media_type(request, &request.route.path).to_vec();
    StageEnd::Reply(Box::new(Reply::new(status, &content_type, text)))
}
