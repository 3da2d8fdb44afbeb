//! Markdown documents as a graph, apart from where they are kept.
