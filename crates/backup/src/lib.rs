//! Copies of the house in another place: a directory or a bucket.

#![deny(missing_docs)]
