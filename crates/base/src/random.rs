/// Splitmix64: all random choices of a run or an estimate come from one start value, which is printed and can
/// be set again.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`; 0 for 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.draw() % n }
    }

    /// True with a probability of so many parts per million; a probability of 0 draws nothing.
    pub fn hits(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers that the reference implementation (Vigna, splitmix64.c) gives for a state of 1234567.
    #[test]
    fn the_published_sequence() {
        let mut random = Random(1_234_567);
        let first = [random.draw(), random.draw(), random.draw()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_share_is_hit_about_as_often() {
        let mut random = Random(1);
        let hits = (0..100_000).filter(|_| random.hits(50_000)).count();
        // Four standard deviations of a binomial.
        assert!((4_724..=5_276).contains(&hits), "{hits}");
        assert!(!Random(1).hits(0) && Random(1).below(0) == 0);
    }
}
