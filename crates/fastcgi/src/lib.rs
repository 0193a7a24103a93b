//! A FastCGI 1.0 client for the responder role, as PHP-FPM speaks it.
//!
//! A request flows through the files in this order:
//!
//! ```text
//! params    name-value pairs, HTTP fields -> Params (PARAMS records)
//! record    the eight bytes before everything
//! exchange  the records of one request, over any stream
//!   decoder   bytes -> STDOUT, STDERR, END_REQUEST
//!   head      STDOUT -> ResponseHead
//!   response  both, and the count of body bytes -> Event
//! error     who did what wrong
//! ```
//!
//! Everything here is without I/O; `upstream-exchange` writes and reads. A
//! connection carries one request at a time, with
//! [`record::REQUEST_ID`], since PHP-FPM does not multiplex.

pub mod decoder;
pub mod error;
pub mod exchange;
pub mod head;
pub mod params;
pub mod record;
pub mod response;

pub use error::{Error, HeadFault, RecordFault, Truncation};
pub use exchange::{Exchange, RequestSpec};
pub use params::{FieldOutcome, Params, ParamsEncoder};
pub use upstream_exchange::{
    BodySource, Event, ExcessData, NoBody, ResponseHead, Side, StreamError,
};

/// Runs the decoder and the head parser over `data`, whose first byte selects
/// the size of the pieces in which the rest arrives. For the fuzzer: must
/// return, whatever the bytes.
#[doc(hidden)]
pub fn fuzz_records(data: &[u8]) {
    response::fuzz(data);
}
