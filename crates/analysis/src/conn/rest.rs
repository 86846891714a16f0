//! A connection in which nothing happens is kept as bytes, and goes on from there.

use super::Conn;
use crate::rest::{Packer, Rest, Unpacker, at_rest};

at_rest! { Conn { who, track, habits, testimony, ex, ledger, role, tickets, ahead, asked, pending, crossed } }

impl Conn {
    /// All of its state, with moments about that of its last packet.
    pub(crate) fn put_to_rest<'a>(&self, to: &'a mut Packer) -> &'a [u8] {
        to.begin(self.now());
        self.put(to);
        to.end()
    }

    /// The connection whose state these bytes are.
    pub(crate) fn from_rest(bytes: &[u8]) -> Conn {
        Conn::get(&mut Unpacker::of(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::renew::tests::packets;
    use super::*;
    use crate::Detail;
    use crate::findings::Basis;
    use crate::output::Output;
    use tcpwhy_base::Random;

    /// A state after so many packets, as bytes.
    fn rested(n: usize) -> Vec<u8> {
        let (packets, mut parts) = (packets(), Output::new(Detail::Worst(3)));
        let mut conn = Conn::new(7, &packets[0], Basis::default());
        packets.iter().take(n).for_each(|segment| conn.push(segment, &mut parts));
        conn.put_to_rest(&mut Packer::default()).to_vec()
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let (packets, mut parts, mut room) = (packets(), Output::new(Detail::Worst(3)), Packer::default());
        let mut conn = Conn::new(7, &packets[0], Basis::default());
        for segment in &packets {
            let bytes = conn.put_to_rest(&mut room).to_vec();
            let mut back = Conn::from_rest(&bytes);
            assert_eq!(format!("{back:?}"), format!("{conn:?}"));
            assert_eq!(back.put_to_rest(&mut Packer::default()), bytes);
            conn.push(segment, &mut parts);
            back.push(segment, &mut parts);
            assert_eq!(format!("{back:?}"), format!("{conn:?}"));
        }
    }

    /// What is read from them is of no use, but it is read, and takes no more room than as many bytes can ask for.
    #[test]
    fn bytes_that_no_state_is_kept_in_are_read_as_well() {
        let mut random = Random(7);
        let whole = rested(40);
        for cut in 0..whole.len() {
            Conn::from_rest(&whole[..cut]);
            Conn::from_rest(&whole[cut..]);
        }
        for n in 0..4_000 {
            let mut bytes = whole.clone();
            if n % 2 == 0 {
                bytes.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            } else {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            let conn = Conn::from_rest(&bytes);
            conn.put_to_rest(&mut Packer::default());
        }
        Conn::from_rest(&[0xff; 4_000]);
        Conn::from_rest(&[]);
    }
}
