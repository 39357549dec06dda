//! Numbers of any size in as few bytes as they need: seven bits at a time, the lowest first.

/// Hands the bytes of `number` to `push`.
#[inline]
pub(crate) fn write(mut number: u64, mut push: impl FnMut(u8)) {
    while number >= 0x80 {
        push(number as u8 | 0x80);
        number >>= 7;
    }
    push(number as u8);
}

/// Takes a number off the front of `bytes`; `None` if there is none.
pub(crate) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = read_byte(bytes)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Takes a byte off the front of `bytes`.
pub(crate) fn read_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_what_is_cut_short_does_not() {
        for number in [0, 1, 0x7f, 0x80, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            write(number, |byte| bytes.push(byte));
            let mut rest = &bytes[..];
            assert_eq!((read(&mut rest), rest.len()), (Some(number), 0));
            assert_eq!(read(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(read(&mut &[0xff; 11][..]), None);
    }
}
