//! Answers to those who call too often.

use crate::answer;
use crate::rate::Rate;
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use kenning_core::Error;

pub(super) fn too_often(rate: &Rate, seconds: u64) -> Response<Body> {
    let n_calls = rate.per_minute();
    let why = format!("the limit of {n_calls} calls a minute was reached");
    limited(why, seconds)
}

pub(super) fn too_many_failures(seconds: u64) -> Response<Body> {
    limited("too many wrong tokens were sent".to_owned(), seconds)
}

fn limited(why: String, seconds: u64) -> Response<Body> {
    let error = Error::limited(why).hint(format!("call again in {seconds} s"));
    let mut response = answer::error(&error);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}
