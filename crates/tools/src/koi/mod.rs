//! The tools of the KOI contract.
