//! The random numbers that torch drew when calls were recorded.

/// How many numbers the generator remembers.
const SIZE: usize = 624;

/// MT19937, as torch's host generator.
pub(crate) struct Stream {
    state: [u32; SIZE],
    at: usize,
}

impl Stream {
    /// The stream from its beginning. torch's tests seed every call that draws numbers with 42.
    pub(crate) fn recorded() -> Stream {
        Stream::new(42)
    }

    fn new(seed: u32) -> Stream {
        let mut state = [seed; SIZE];
        for i in 1..SIZE {
            let last = state[i - 1];
            state[i] = (last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Stream { state, at: SIZE }
    }

    fn renew(&mut self) {
        for i in 0..SIZE {
            let joined = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % SIZE] & 0x7fff_ffff);
            let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + 397) % SIZE] ^ (joined >> 1) ^ twist;
        }
        self.at = 0;
    }

    fn next(&mut self) -> u32 {
        if self.at == SIZE {
            self.renew();
        }
        let mut number = self.state[self.at];
        self.at += 1;
        number ^= number >> 11;
        number ^= (number << 7) & 0x9d2c_5680;
        number ^= (number << 15) & 0xefc6_0000;
        number ^ (number >> 18)
    }

    /// A number from 0 to 1 in double precision, 1 excluded.
    pub(crate) fn uniform(&mut self) -> f64 {
        let (high, low) = (u64::from(self.next()), u64::from(self.next()));
        let bits = ((high << 32) | low) & ((1 << 53) - 1);
        bits as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_reference() {
        let mut stream = Stream::new(5489);
        assert_eq!([stream.next(), stream.next()], [3_499_211_612, 581_869_302]);
        let ten_thousandth = (2..9_999).map(|_| stream.next()).count();
        assert_eq!((ten_thousandth, stream.next()), (9_997, 4_123_659_995));
    }
}
