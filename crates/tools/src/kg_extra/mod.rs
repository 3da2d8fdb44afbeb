//! What people want of a graph beyond its contract.
