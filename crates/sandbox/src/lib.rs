//! Where tools that somebody else wrote are run.
