//! Carries messages to other nodes.

use kenning_core::{Error, Result};
use kenning_egress::{Egress, Grant, Limits, Method, Policy, Request, host_of};
use std::time::Duration;

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The largest answer that is read.
pub(super) const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The base URL of the node.
    pub base_url: String,
    /// Whether the operator named it: others may not lead into a private network.
    pub is_granted: bool,
}

impl Destination {
    /// The address of an endpoint. The reference has `/koi-net` in its base URL, Octo nodes do not.
    pub fn url(&self, path: &str) -> String {
        let base = self.base_url.trim_end_matches('/');
        match base.ends_with("/koi-net") {
            true => format!("{base}{path}"),
            false => format!("{base}/koi-net{path}"),
        }
    }
}

/// What a node answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Carries messages.
pub trait Carrier {
    /// Posts a body to an endpoint of a node, or gets it if there is none.
    ///
    /// # Errors
    /// Those of the network; a status is not one.
    fn carry(&self, to: &Destination, path: &str, body: Option<&str>) -> Result<Carried>;
}

/// Over HTTP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Http;

impl Carrier for Http {
    fn carry(&self, to: &Destination, path: &str, body: Option<&str>) -> Result<Carried> {
        let mut grants = Vec::new();
        if to.is_granted {
            grants.push(Grant::parse(&to.base_url)?);
        }
        let egress = Egress::new(Policy {
            grants,
            limits: Limits {
                total_timeout: TIMEOUT,
                body_bytes_max: ANSWER_BYTES_MAX,
                // Whoever redirects is not who was named.
                redirects_max: 0,
                ..Limits::default()
            },
            ..Policy::default()
        });
        let json = ("content-type".to_owned(), "application/json".to_owned());
        let response = egress.fetch(Request {
            method: if body.is_some() {
                Method::Post
            } else {
                Method::Get
            },
            url: to.url(path),
            headers: body.map(|_| json).into_iter().collect(),
            body: body.unwrap_or_default().as_bytes().to_vec(),
            ..Request::default()
        })?;
        let (status, body) = (response.status, response.body);
        Ok(Carried { status, body })
    }
}

/// Refuses what is not the base URL of a node.
pub(super) fn check_url(url: &str) -> Result<()> {
    let bad = |why: &str| {
        Error::invalid(format!("`{url}` is not the base URL of a node: {why}"))
            .hint("it is for example `https://node.example.org/koi-net`")
    };
    if url.len() > 500 || url.contains(['?', '#', '@', ' ']) {
        return Err(bad("it has a query, a fragment, a user name or spaces"));
    }
    host_of(url).map_err(|cause| bad("it is not an address").because(cause))?;
    Ok(())
}
