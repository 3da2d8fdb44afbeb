//! Maps PostgreSQL's errors to ours, by what the caller can do about them.

use kenning_core::{Code, Error};
use tokio_postgres::error::SqlState;

/// Converts an error of PostgreSQL. SQL, addresses and passwords stay out of the message.
pub(crate) fn from_postgres(cause: tokio_postgres::Error) -> Error {
    let again = "call again";
    let Some(state) = cause.code() else {
        // No answer from the server at all: it stopped, or was never reached.
        let error = if cause.is_closed() {
            Error::unavailable("the database closed the connection").hint(again)
        } else if cause.to_string().starts_with("error deserializing") {
            Error::corrupt("a stored row is malformed")
        } else {
            Error::unavailable("the database cannot be reached")
                .hint("check that it runs, then call again")
        };
        return error.because(cause);
    };
    let class = state.code().get(..2).unwrap_or_default();
    let error = match (class, state) {
        (_, &SqlState::UNIQUE_VIOLATION) => Error::conflict("a row with that key already exists"),
        (_, &SqlState::FOREIGN_KEY_VIOLATION) => {
            Error::new(Code::NotFound, "a row refers to a row that does not exist")
        }
        (_, &SqlState::LOCK_NOT_AVAILABLE) => {
            Error::unavailable("another server holds the lock on the log").hint(again)
        }
        (_, &SqlState::QUERY_CANCELED) => {
            Error::unavailable("the database took too long").hint(again)
        }
        (_, &SqlState::PROGRAM_LIMIT_EXCEEDED) => {
            Error::too_large("a value is larger than the database can hold")
        }
        (_, &SqlState::READ_ONLY_SQL_TRANSACTION) => Error::denied(
            "this database does not accept writes: it is a standby, or set to read only",
        )
        .hint("write through a server on the primary; start this one with `--read-only`"),
        (_, &SqlState::UNDEFINED_FILE) => Error::unavailable("the database lacks an extension")
            .hint("install pgvector on the database server"),
        ("28", _) => Error::unavailable("the database refused the user or the password")
            .hint("check the address in `--database` or KENNING_DATABASE_URL"),
        ("3D", _) => {
            Error::unavailable("there is no such database").hint("create it first: `createdb NAME`")
        }
        ("42", &SqlState::INSUFFICIENT_PRIVILEGE) => {
            Error::unavailable("the database's user lacks a permission")
                .hint("let the owner of the database run `kenning` once")
        }
        // Connection exceptions, resources, operator intervention, transaction rollback, I/O.
        ("08" | "53" | "57" | "40" | "58" | "55", _) => {
            Error::unavailable("the database is not available right now").hint(again)
        }
        ("XX", _) => Error::corrupt("the database reports damaged data"),
        _ => Error::internal("the database refused a statement"),
    };
    error.because(cause)
}
