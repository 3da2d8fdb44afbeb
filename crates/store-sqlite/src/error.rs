//! Maps SQLite's errors to ours, by what the caller can do about them.

use kenning_core::{Code, Error};
use rusqlite::ErrorCode;

/// Converts an error of SQLite. SQL and file names stay in the cause.
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
        Some(ErrorCode::Unknown) if is_damaged_schema(&cause) => damaged(),
        Some(ErrorCode::ConstraintViolation) if is_foreign_key_failure(&cause) => {
            Error::new(Code::NotFound, "a row refers to a row that does not exist")
        }
        Some(ErrorCode::ConstraintViolation) => {
            Error::conflict("a row with that key already exists")
        }
        Some(ErrorCode::TooBig) => Error::too_large("a value is larger than the store can hold"),
        _ if matches!(
            cause,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..)
        ) =>
        {
            Error::corrupt("a stored row is malformed")
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

/// Whether a foreign key constraint failed.
fn is_foreign_key_failure(cause: &rusqlite::Error) -> bool {
    let code = cause.sqlite_error().map(|it| it.extended_code);
    code == Some(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY)
}

/// Whether the schema in the file is damaged. Our statements are fixed and use only what the migrations
/// made, so if SQLite does not find a table, the pages that hold the schema are wrong.
fn is_damaged_schema(cause: &rusqlite::Error) -> bool {
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

/// Whether it is unknown if the disk holds what was committed; only opening the file again can tell. A
/// damaged page is found before the commit record is written, so that is not such a case.
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
