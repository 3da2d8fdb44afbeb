//! Refusals of KOI calls, with the status of the HTTP API.
//!
//! Tools and routes give the same error; only a route also needs a status. Most follow from the
//! error's code; where the original has another, it is given explicitly.

use kenning_core::{Code, Error};
use kenning_engine::koi::{WebFault, WebFaultKind};

/// An error, and the status of its HTTP answer.
#[derive(Debug)]
pub struct Refusal {
    /// Of the HTTP answer.
    pub status: u16,
    /// What is wrong.
    pub error: Error,
}

impl Refusal {
    /// A refusal with a status of its own.
    #[must_use]
    pub fn new(status: u16, error: Error) -> Self {
        Self { status, error }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match error.code {
            Code::InvalidInput => 422,
            Code::Unauthenticated => 401,
            Code::Denied => 403,
            Code::NotFound => 404,
            Code::Conflict => 409,
            Code::TooLarge => 413,
            Code::Limited => 429,
            Code::Unavailable => 503,
            Code::Timeout => 504,
            _ => 500,
        };
        Self { status, error }
    }
}

impl From<Box<WebFault>> for Refusal {
    fn from(fault: Box<WebFault>) -> Self {
        let status = match fault.kind {
            WebFaultKind::Refused | WebFaultKind::NotReady => 400,
            WebFaultKind::NotFetched => 422,
            WebFaultKind::Limited => 429,
            WebFaultKind::NotFound => 404,
            WebFaultKind::Off => 503,
            WebFaultKind::Model => 502,
            WebFaultKind::Other => return fault.error.into(),
        };
        Self::new(status, fault.error)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        refusal.error
    }
}
