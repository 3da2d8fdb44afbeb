//! The address ranges that are not the public internet, as one table.
//!
//! The rows follow the two IANA special-purpose registries, plus what IPv6 has not given out and
//! the few public addresses that clouds answer for themselves. Rows are read from the top and the
//! first that holds the address decides, so a narrow row stands above the wide one around it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: an address and how many of its leading bits count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Net {
    address: IpAddr,
    prefix: u8,
}

impl Net {
    /// A network, or nothing if the prefix is longer than the address.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (prefix <= bits).then_some(Self { address, prefix })
    }

    /// The address the network is written with.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many leading bits count.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether the address lies in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(net), IpAddr::V4(it)) => {
                let differing = net.to_bits() ^ it.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(net), IpAddr::V6(it)) => {
                let differing = net.to_bits() ^ it.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Special {
    /// The range.
    pub net: Net,
    /// What it is, to follow "resolves to".
    pub why: &'static str,
    /// Whether the last 32 bits are an IPv4 address that is judged in its place.
    pub embeds_v4: bool,
}

/// Every special range, narrow rows above wide ones.
pub const SPECIAL: &[Special] = &[
    v4([0, 0, 0, 0], 8, "an address of this host"),
    v4([10, 0, 0, 0], 8, "a private address"),
    v4([100, 64, 0, 0], 10, "a carrier's shared address"),
    v4([127, 0, 0, 0], 8, "a loopback address"),
    v4([168, 63, 129, 16], 32, "a cloud's host agent"),
    v4([169, 254, 0, 0], 16, "a link-local address"),
    v4([172, 16, 0, 0], 12, "a private address"),
    v4([192, 0, 0, 0], 24, "a protocol assignment"),
    v4([192, 0, 2, 0], 24, "a documentation address"),
    v4([192, 31, 196, 0], 24, "a sink for private names"),
    v4([192, 52, 193, 0], 24, "a multicast relay"),
    v4([192, 88, 99, 0], 24, "a 6to4 relay"),
    v4([192, 168, 0, 0], 16, "a private address"),
    v4([192, 175, 48, 0], 24, "a sink for private names"),
    v4([198, 18, 0, 0], 15, "a benchmarking address"),
    v4([198, 51, 100, 0], 24, "a documentation address"),
    v4([203, 0, 113, 0], 24, "a documentation address"),
    v4([224, 0, 0, 0], 4, "a multicast address"),
    v4([255, 255, 255, 255], 32, "the broadcast address"),
    v4([240, 0, 0, 0], 4, "a reserved address"),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, "the unspecified address"),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, "a loopback address"),
    // These two embed IPv4 addresses: a public address stays public, a private one private.
    embedding([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, "a mapped address"),
    embedding([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "a translated address"),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "a local translation"),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, "an IPv4-compatible address"),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "a discard address"),
    v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64, "a dummy address"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "a Teredo tunnel"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "a protocol assignment"),
    v6(
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0],
        32,
        "a documentation address",
    ),
    // A 6to4 address carries an IPv4 address too, but nothing public is served there any more.
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "a 6to4 tunnel"),
    v6(
        [0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0],
        48,
        "a sink for private names",
    ),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "a documentation address"),
    v6(
        [0x5f00, 0, 0, 0, 0, 0, 0, 0],
        16,
        "a segment routing address",
    ),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "a private address"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "a link-local address"),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "a site-local address"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "a multicast address"),
    // The public part of IPv6 is 2000::/3. The rest is unassigned, so a host that answers
    // there is on our own network.
    v6([0, 0, 0, 0, 0, 0, 0, 0], 3, "an unassigned address"),
    v6([0x4000, 0, 0, 0, 0, 0, 0, 0], 2, "an unassigned address"),
    v6([0x8000, 0, 0, 0, 0, 0, 0, 0], 1, "an unassigned address"),
];

const fn v4([a, b, c, d]: [u8; 4], prefix: u8, why: &'static str) -> Special {
    let address = IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    Special {
        net: Net { address, prefix },
        why,
        embeds_v4: false,
    }
}

const fn v6(it: [u16; 8], prefix: u8, why: &'static str) -> Special {
    let address = Ipv6Addr::new(it[0], it[1], it[2], it[3], it[4], it[5], it[6], it[7]);
    Special {
        net: Net {
            address: IpAddr::V6(address),
            prefix,
        },
        why,
        embeds_v4: false,
    }
}

const fn embedding(it: [u16; 8], prefix: u8, why: &'static str) -> Special {
    let mut row = v6(it, prefix, why);
    row.embeds_v4 = true;
    row
}

/// The row that makes an address special, or nothing for the public internet.
pub fn special(address: IpAddr) -> Option<&'static Special> {
    let row = SPECIAL.iter().find(|row| row.net.contains(address))?;
    match address {
        IpAddr::V6(outer) if row.embeds_v4 => {
            let [.., a, b, c, d] = outer.octets();
            special(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
        }
        _ => Some(row),
    }
}

/// Whether an address is anything but the public internet.
pub fn is_special(address: IpAddr) -> bool {
    special(address).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The table again, in the slowest way: networks as texts, compared bit by bit as strings.
    fn slow(address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => address
                .octets()
                .iter()
                .map(|b| format!("{b:08b}"))
                .collect(),
            IpAddr::V6(address) => address
                .octets()
                .iter()
                .map(|b| format!("{b:08b}"))
                .collect::<String>(),
        };
        let within = |net: &str| {
            let (base, prefix) = net.split_once('/').unwrap();
            let base = bits(base.parse().unwrap());
            let it = bits(address);
            base.len() == it.len() && it.starts_with(&base[..prefix.parse().unwrap()])
        };
        if within("::ffff:0:0/96") || within("64:ff9b::/96") {
            let IpAddr::V6(outer) = address else {
                unreachable!()
            };
            let inner = u32::try_from(outer.to_bits() & 0xffff_ffff).unwrap();
            return slow(IpAddr::V4(Ipv4Addr::from_bits(inner)));
        }
        if address.is_ipv6() && !within("2000::/3") {
            return true;
        }
        [
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "2620:4f:8000::/48",
            "3fff::/20",
        ]
        .into_iter()
        .any(within)
    }

    /// What the standard library calls not public. It knows fewer ranges, so this goes one way.
    fn std_says_special(address: IpAddr) -> bool {
        match address {
            IpAddr::V4(it) => {
                it.is_private()
                    || it.is_loopback()
                    || it.is_link_local()
                    || it.is_broadcast()
                    || it.is_documentation()
                    || it.is_unspecified()
                    || it.is_multicast()
            }
            IpAddr::V6(it) => {
                it.is_loopback()
                    || it.is_unspecified()
                    || it.is_multicast()
                    || it.is_unique_local()
                    || it.is_unicast_link_local()
                    || it
                        .to_ipv4_mapped()
                        .is_some_and(|it| std_says_special(it.into()))
            }
        }
    }

    fn check(address: IpAddr) {
        let fast = is_special(address);
        assert_eq!(fast, slow(address), "{address}");
        assert!(fast || !std_says_special(address), "{address}");
    }

    #[test]
    fn both_ends_of_every_row_and_their_neighbors_agree_with_a_slow_second_table() {
        for row in SPECIAL {
            match row.net.address() {
                IpAddr::V4(it) => {
                    let first = it.to_bits();
                    let last = first | u32::MAX.checked_shr(row.net.prefix().into()).unwrap_or(0);
                    for it in [first, last, first.wrapping_sub(1), last.wrapping_add(1)] {
                        check(Ipv4Addr::from_bits(it).into());
                        // The same address in its two IPv6 forms.
                        check(Ipv4Addr::from_bits(it).to_ipv6_mapped().into());
                        let nat64 = (0x64_ff9b_u128 << 96) | u128::from(it);
                        check(Ipv6Addr::from_bits(nat64).into());
                    }
                }
                IpAddr::V6(it) => {
                    let first = it.to_bits();
                    let last = first | u128::MAX.checked_shr(row.net.prefix().into()).unwrap_or(0);
                    for it in [first, last, first.wrapping_sub(1), last.wrapping_add(1)] {
                        check(Ipv6Addr::from_bits(it).into());
                    }
                }
            }
        }
    }

    #[test]
    fn no_row_is_hidden_by_a_wider_one_above_it() {
        for (idx, row) in SPECIAL.iter().enumerate() {
            for above in &SPECIAL[..idx] {
                let hidden =
                    above.net.prefix() <= row.net.prefix() && above.net.contains(row.net.address());
                assert!(!hidden, "{} is hidden by {}", row.net, above.net);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..Default::default() })]

        #[test]
        fn a_random_v4_address_is_judged_as_the_slow_table_judges_it(bits: u32) {
            check(Ipv4Addr::from_bits(bits).into());
            check(Ipv4Addr::from_bits(bits).to_ipv6_mapped().into());
        }

        #[test]
        fn a_random_v6_address_is_judged_as_the_slow_table_judges_it(bits: u128, global: bool) {
            // Half of them are moved into 2000::/3, where the few public rows are.
            let bits = if global { (bits >> 3) | (1 << 125) } else { bits };
            check(Ipv6Addr::from_bits(bits).into());
        }

        #[test]
        fn an_address_near_a_row_is_judged_as_the_slow_table_judges_it(idx in 0..SPECIAL.len(), noise: u128, keep in 0u32..=128) {
            match SPECIAL[idx].net.address() {
                IpAddr::V4(it) => {
                    let noise = u32::try_from(noise & 0xffff_ffff).unwrap();
                    let noise = noise.checked_shr(keep % 33).unwrap_or(0);
                    check(Ipv4Addr::from_bits(it.to_bits() ^ noise).into());
                }
                IpAddr::V6(it) => {
                    let noise = noise.checked_shr(keep).unwrap_or(0);
                    check(Ipv6Addr::from_bits(it.to_bits() ^ noise).into());
                }
            }
        }
    }
}
