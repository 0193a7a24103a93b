//! One test program: requests, and the responses of well and badly behaved upstreams.

mod exchange;
mod invalid_responses;
mod scripted_upstream;
