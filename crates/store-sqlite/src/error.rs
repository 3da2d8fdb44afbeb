//! SQLite's errors, by what the caller can do.

use kenning_core::{Code, Error};
use rusqlite::ErrorCode;

/// The house's error for SQLite's. SQL and file names stay in the cause.
pub(crate) fn from_sqlite(cause: rusqlite::Error) -> Error {
    let error = match cause.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            Error::unavailable("the disk is full").hint("free some space and call again")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::unavailable("the store is locked by another program").hint("call again")
        }
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            Error::unavailable("the disk does not answer").hint("check the disk, then call again")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            Error::unavailable("the store cannot be written")
                .hint("check the data directory's owner")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(),
        Some(ErrorCode::Unknown) if says_that_the_schema_is_another(&cause) => damaged(),
        Some(ErrorCode::ConstraintViolation) if names_no_row(&cause) => {
            Error::new(Code::NotFound, "a row refers to a row that is not there")
        }
        Some(ErrorCode::ConstraintViolation) => Error::conflict("a row of that key exists already"),
        Some(ErrorCode::TooBig) => Error::too_large("a value is larger than the store can hold"),
        _ if matches!(
            cause,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..)
        ) =>
        {
            Error::corrupt("a stored row does not have the form it must have")
        }
        _ => Error::internal("the store refused a statement"),
    };
    error.because(cause)
}

/// The store's file is not what was written.
pub(crate) fn damaged() -> Error {
    let message = format!("the store's file `{}` is damaged", crate::FILE_NAME);
    Error::corrupt(message)
        .hint("`kenning doctor` says more; `kenning restore` brings back a backup")
}

/// Whether a row refers to one that is not there.
fn names_no_row(cause: &rusqlite::Error) -> bool {
    let code = cause.sqlite_error().map(|it| it.extended_code);
    code == Some(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY)
}

/// Our statements are fixed and name only what the migrations made. Where SQLite does not find it, the
/// pages that say what there is are others.
fn says_that_the_schema_is_another(cause: &rusqlite::Error) -> bool {
    let text = cause.to_string();
    [
        "no such table",
        "no such column",
        "no such index",
        "has no column named",
        "vtable constructor failed",
        "malformed",
        "invalid rootpage",
        "missing from index",
        "fts5",
        "unsupported file format",
        "may not be modified",
    ]
    .iter()
    .any(|it| text.contains(it))
}

/// Whether the disk may or may not hold what was committed. Only a reopen can tell. What finds a damaged
/// page finds it before the record of the commit is written.
pub(crate) fn leaves_the_disk_unknown(cause: &rusqlite::Error) -> bool {
    !matches!(
        cause.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DatabaseCorrupt
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    /// The code of what a statement is refused with.
    fn code_of(sql: &str) -> Code {
        let connection = Connection::open_in_memory().unwrap();
        let got = connection.query_row(sql, [], |row| row.get::<_, String>(0));
        from_sqlite(got.unwrap_err()).code
    }

    #[test]
    fn what_only_a_damaged_file_can_say_is_called_damaged() {
        assert_eq!(code_of("SELECT body FROM nodes"), Code::Corrupt);
        assert_eq!(code_of("SELECT CAST(x'ff' AS TEXT)"), Code::Corrupt);
        assert_eq!(code_of("SELECT 1"), Code::Corrupt);
        assert_eq!(code_of("SELECT"), Code::Internal);
    }
}
