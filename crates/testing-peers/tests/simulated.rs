//! A few seeds of each; `cargo xtask simulate` runs as many as are asked for.

#![allow(clippy::panic, reason = "tests fail by panicking")]

#[test]
fn nodes_agree_whatever_the_network_and_the_clocks_do() {
    for seed in 0..16 {
        if let Err(error) = kenning_testing_peers::converge(seed, 120) {
            panic!("seed {seed}: {error}");
        }
    }
}

#[test]
fn a_lying_peer_is_noticed_and_changes_nothing() {
    for seed in 0..64 {
        if let Err(error) = kenning_testing_peers::lie(seed) {
            panic!("seed {seed}: {error}");
        }
    }
}

#[test]
fn the_tools_of_all_wings_answer_alike_on_every_node() {
    for seed in 0..4 {
        if let Err(error) = kenning_testing_peers::use_tools(seed, 40) {
            panic!("seed {seed}: {error}");
        }
    }
}

#[test]
fn nodes_that_may_not_do_everything_get_and_give_no_more_than_they_may() {
    let mut n_refused = 0;
    for seed in 0..32 {
        match kenning_testing_peers::restrict(seed) {
            Ok(n) => n_refused += n,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(n_refused > 0, "no event of an unknown author was offered");
}
