//! Python's `random.Random(seed).shuffle`, so that dates are spread as the reference spreads them.

const N: usize = 624;
const M: usize = 397;

/// The Mersenne Twister (MT19937), seeded with one number.
struct Twister {
    state: [u32; N],
    at: usize,
}

impl Twister {
    fn new(seed: u32) -> Self {
        let mut state = [0_u32; N];
        state[0] = 19_650_218;
        for i in 1..N {
            state[i] = following(state[i - 1], 1_812_433_253).wrapping_add(to_u32(i));
        }
        let mut i = 1;
        for _ in 0..N {
            state[i] = (state[i] ^ following(state[i - 1], 1_664_525)).wrapping_add(seed);
            i = next_place(&mut state, i);
        }
        for _ in 1..N {
            state[i] = (state[i] ^ following(state[i - 1], 1_566_083_941)).wrapping_sub(to_u32(i));
            i = next_place(&mut state, i);
        }
        state[0] = 0x8000_0000;
        Self { state, at: N }
    }

    fn next(&mut self) -> u32 {
        if self.at == N {
            for i in 0..N {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
                let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ odd;
            }
            self.at = 0;
        }
        let mut y = self.state[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn below(&mut self, n: u32) -> u32 {
        loop {
            let drawn = self.next() >> n.leading_zeros();
            if drawn < n {
                return drawn;
            }
        }
    }
}

fn following(before: u32, factor: u32) -> u32 {
    (before ^ (before >> 30)).wrapping_mul(factor)
}

fn next_place(state: &mut [u32; N], i: usize) -> usize {
    if i + 1 < N {
        return i + 1;
    }
    state[0] = state[N - 1];
    1
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The numbers from 0 to `n`, shuffled.
pub(super) fn shuffled(n: usize, seed: u32) -> Vec<usize> {
    let mut twister = Twister::new(seed);
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        let j = twister.below(to_u32(i + 1)) as usize;
        order.swap(i, j);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_python() {
        assert_eq!(shuffled(10, 1), [6, 8, 9, 7, 5, 3, 0, 4, 1, 2]);
    }
}
