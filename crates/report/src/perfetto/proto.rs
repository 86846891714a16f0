//! The wire format of protocol buffers, as much as is written here: varints and what has a length.

/// A message as it grows.
#[derive(Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// An integer, an enumerator or a truth value.
    pub(super) fn int(&mut self, field: u32, value: u64) -> &mut Message {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// Text or bytes.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Message {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A message within.
    pub(super) fn message(&mut self, field: u32, inner: &Message) -> &mut Message {
        self.bytes(field, &inner.0)
    }

    /// A floating point number of eight bytes.
    pub(super) fn double(&mut self, field: u32, value: f64) -> &mut Message {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_encoding_guide_has_it() {
        // protobuf.dev, "Encoding": field 1 with 150; field 2 with "testing"; a message of the first in field 3.
        let mut first = Message::default();
        first.int(1, 150);
        assert_eq!(first.0, [0x08, 0x96, 0x01]);
        let mut text = Message::default();
        text.bytes(2, b"testing");
        assert_eq!(text.0, b"\x12\x07testing");
        let mut outer = Message::default();
        outer.message(3, &first).double(4, 1.0);
        assert_eq!(outer.0, b"\x1a\x03\x08\x96\x01\x21\0\0\0\0\0\0\xf0\x3f");
    }
}
