//! A FastCGI 1.0 client for the responder role, as PHP-FPM speaks it.
//!
//! A request flows through the files in this order:
//!
//! ```text
//! params    name-value pairs, HTTP fields -> Params (PARAMS records)
//! record    the eight bytes before everything
//! exchange  one request and its response over any stream
//!   decoder   bytes -> STDOUT, STDERR, END_REQUEST
//!   head      STDOUT -> ResponseHead
//!   response  both, and the count of body bytes -> Event
//! error     who did what wrong
//! ```
//!
//! Everything but `exchange` is without I/O. The crate opens no socket and
//! keeps no pool: it takes a connected stream and, when the exchange ended
//! cleanly, gives it back. A connection carries one request at a time, with
//! [`record::REQUEST_ID`], since PHP-FPM does not multiplex.

pub mod decoder;
pub mod error;
pub mod exchange;
pub mod head;
pub mod params;
pub mod record;
pub mod response;

pub use error::{Error, HeadFault, RecordFault, Side, Truncation};
pub use exchange::{Exchange, RequestSpec};
pub use head::ResponseHead;
pub use params::{FieldOutcome, Params, ParamsEncoder};
pub use request_body::{BodySource, NoBody};
pub use response::{Event, Surplus};

/// Runs the decoder and the head parser over `data`, whose first byte says
/// how to cut the rest. For the fuzzer: must return, whatever the bytes.
#[doc(hidden)]
pub fn fuzz_records(data: &[u8]) {
    response::fuzz(data);
}
