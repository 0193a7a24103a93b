//! One test program: requests, and the responses of well and badly behaved upstreams.

mod exchange;
mod head_limits;
mod invalid_responses;
mod odd_responses;
mod scripted_upstream;
