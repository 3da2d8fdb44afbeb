//! SQLite's errors, by what the caller can do.

use kenning_core::Error;
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
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::corrupt(format!(
            "the store's file `{}` is damaged",
            crate::FILE_NAME
        ))
        .hint("`kenning doctor` says more; `kenning restore` brings back a backup"),
        Some(ErrorCode::ConstraintViolation) => Error::conflict("a row of that key exists already"),
        Some(ErrorCode::TooBig) => Error::too_large("a value is larger than the store can hold"),
        _ if matches!(
            cause,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
        ) =>
        {
            Error::corrupt("a stored row does not have the form it must have")
        }
        _ => Error::internal("the store refused a statement"),
    };
    error.because(cause)
}

/// Whether the disk may or may not hold what was committed. Only a reopen can tell.
pub(crate) fn leaves_the_disk_unknown(cause: &rusqlite::Error) -> bool {
    !matches!(
        cause.sqlite_error_code(),
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}
