//! The second pass over a file: the packets of one exchange, for its time line.
