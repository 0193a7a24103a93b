//! `empty_gif`: a picture of one transparent pixel
//! (<https://nginx.org/en/docs/http/ngx_http_empty_gif_module.html>).

use bytes::Bytes;

use crate::exchange::handled::StageEnd;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;

/// The picture, as small as GIF allows it.
const EMPTY_GIF: &[u8; 43] = b"GIF89a\x01\x00\x01\x00\x80\x01\x00\x00\x00\x00\xff\xff\xff\
    !\xf9\x04\x01\x00\x00\x01\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02L\x01\x00;";
/// The modification time that nginx sends for it: 28 September 1970.
const EMPTY_GIF_MODIFIED: i64 = 23_349_600;

/// The picture.
pub fn handle(request: &Request) -> StageEnd {
    if !request.route.method.is_read() {
        return StageEnd::Status(405);
    }
    let mut reply = Reply::new(200, b"image/gif", Bytes::from_static(EMPTY_GIF));
    reply.head.last_modified = Some(EMPTY_GIF_MODIFIED);
    let date = http_semantics::date::format(EMPTY_GIF_MODIFIED);
    reply
        .head
        .fields
        .append("Last-Modified", Bytes::copy_from_slice(&date));
    StageEnd::Reply(Box::new(reply))
}
