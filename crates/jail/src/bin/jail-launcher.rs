//! The smallest launcher there can be, for tests: what the program `kenning` does in its first line.

fn main() {
    kenning_jail::enter_if_asked();
}
