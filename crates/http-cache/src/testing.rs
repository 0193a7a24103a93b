//! Helpers of the tests: fields from text, responses in one line, seeded random numbers.

use crate::fields::{Field, NoFields};
use crate::policy::Policy;
use crate::reason::Reason;
use crate::storability::{RequestFacts, ResponseFacts, Storable, decide};
use crate::stored::{ResponseHead, StoredHead, StoredResponse};
use crate::{Body, CacheKey, Millis, Stamp};
use bytes::Bytes;

/// The moment most tests begin at: Sun, 06 Nov 1994 08:49:37 GMT.
pub(crate) const T0: Millis = Millis(784_111_777_000);

/// `Name: value` lines.
pub(crate) fn fields(lines: &[&str]) -> Vec<Field> {
    let field = |line: &&str| {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        (
            Bytes::copy_from_slice(name.as_bytes()),
            Bytes::copy_from_slice(value.as_bytes()),
        )
    };
    lines.iter().map(field).collect()
}

pub(crate) fn key(name: &str) -> CacheKey {
    CacheKey::new(name.into())
}

/// Decides about a 200 for a GET.
pub(crate) fn decide_200(
    request: &[Field],
    response: &[Field],
    policy: &Policy,
) -> Result<Storable, Reason> {
    let request = RequestFacts {
        method: b"GET",
        fields: &request.to_vec(),
        no_store_condition: false,
        uses: 1,
    };
    let response = ResponseFacts {
        status: 200,
        fields: response,
        declared_length: None,
    };
    decide(&request, &response, policy, T0)
}

/// A storable for a GET without fields, from the response's lines.
pub(crate) fn storable(lines: &[&str], request: &[Field]) -> Storable {
    decide_200(request, &fields(lines), &Policy::default()).expect("storable")
}

/// A response fresh for `secs` from `now` with a body of `len` bytes.
pub(crate) fn response(secs: u32, len: usize, now: Millis, stamp: Stamp) -> StoredResponse {
    let lines = [format!("X-Accel-Expires: {secs}")];
    let storable = storable(&lines.each_ref().map(String::as_str), &[]);
    StoredResponse::new(
        StoredHead::new(&ResponseHead::OK, &storable, now),
        Body::pack(&[Bytes::from(vec![b'x'; len])]),
        stamp,
    )
}

pub(crate) const NO_FIELDS: &NoFields = &NoFields;

/// SplitMix64: small, seeded, good enough to shuffle.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
