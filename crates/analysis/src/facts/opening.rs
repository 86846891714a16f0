//! What is said of a connection that opened late, or not at all.

use super::times;
use std::fmt::{self, Display as _};
use tcpwhy_base::Nanos;

/// Said of every handshake: a template takes as long as what it says.
pub(super) fn round_trip(f: &mut fmt::Formatter<'_>, rtt: Nanos) -> fmt::Result {
    if rtt <= Nanos::ZERO {
        return f.write_str("The trips that the distance sets.");
    }
    f.write_str("One round trip (")?;
    rtt.fmt(f)?;
    f.write_str("), which the distance sets.")
}

pub(super) fn encryption_refused(f: &mut fmt::Formatter<'_>, rtt: Nanos) -> fmt::Result {
    let asked = "The client asked for encryption, and the server refused it: no TLS followed. ";
    f.write_str(asked)?;
    round_trip(f, rtt)
}

pub(super) fn key_asked_again(f: &mut fmt::Formatter<'_>, rtt: Nanos) -> fmt::Result {
    f.write_str("One round trip")?;
    if rtt > Nanos::ZERO {
        write!(f, " ({rtt})")?;
    }
    f.write_str(" went to another key: the client had sent one of a group that the server did not want (HelloRetryRequest). ")?;
    f.write_str("A server that takes that group saves it (nginx: `ssl_ecdh_curve`, X25519 first), or a client that sends ")?;
    f.write_str("the other one first (OpenSSL: the first of `Groups`).")
}

pub(super) fn syn_repeats(
    f: &mut fmt::Formatter<'_>,
    repeats: u32,
    over: Nanos,
    what: &str,
    at_server: bool,
    answered: bool,
) -> fmt::Result {
    let times = format!("{} more", times(repeats));
    if answered {
        return write!(
            f,
            "{what} was sent {times} over {over} although a SYN-ACK had passed the tap: that SYN-ACK, or its ACK, was lost on the way."
        );
    }
    let place = match at_server {
        true => {
            ", though it had reached the server's tap: its host ignored it, as it does with a full accept queue"
        }
        // A SYN-ACK is repeated where the ACK of it is late: the queue is asked for by name where the tap proves it.
        false if what == "The SYN" => {
            ": it was lost, or the server's host ignored it, as it does with a full accept queue (accept_queue_full)"
        }
        false => "",
    };
    write!(f, "{what} was sent {times} over {over} before it was answered{place}.")
}

pub(super) fn unanswered(f: &mut fmt::Formatter<'_>, syns: u32, over: Nanos) -> fmt::Result {
    write!(f, "{syns} SYNs over {over} and no answer to any of them in this capture.")
}

pub(super) fn syns_ignored(f: &mut fmt::Formatter<'_>, syns: u32, over: Nanos) -> fmt::Result {
    write!(
        f,
        "{syns} SYNs over {over} reached the server's tap, and none was answered: a packet filter of its host drops them, or its accept queue is full."
    )
}

pub(super) fn syns_lost(
    f: &mut fmt::Formatter<'_>,
    repeats: u32,
    over: Nanos,
    lost: (u32, u32),
) -> fmt::Result {
    write!(f, "The SYN was sent {} more over {over}: ", times(repeats))?;
    let of = |n: u32, what: &str| if n == 1 { format!("one {what}") } else { format!("{n} {what}s") };
    let there = format!("{} never came to the server's tap", of(lost.0, "SYN"));
    let back = format!("{} left there and never came here", of(lost.1, "SYN-ACK"));
    match lost {
        (0, _) => write!(f, "{back}."),
        (_, 0) => write!(f, "{there}."),
        _ => write!(f, "{there}, and {back}."),
    }
}

pub(super) fn not_taken(f: &mut fmt::Formatter<'_>, repeats: u32, syn_acks: u32) -> fmt::Result {
    let (repeats, repeated) = (times(repeats), times(syn_acks));
    if syn_acks == 0 {
        return write!(
            f,
            "The first data was sent {repeats} more, each time without any acknowledgement, after a handshake that looked complete: the server had not taken the final ACK."
        );
    }
    write!(
        f,
        "After the client's final ACK the server repeated its SYN-ACK {repeated} and the first data was sent {repeats} more: the server had not taken the final ACK."
    )
}

pub(super) fn first_data(f: &mut fmt::Formatter<'_>, bytes: u32, wait: Nanos, repeats: u32) -> fmt::Result {
    write!(
        f,
        "{bytes} bytes were retransmitted after {wait}: the first of the connection, sent {} more, and none acknowledged. They were lost, or the server had not taken the final ACK (accept_queue_full): only its own tap or counters tell.",
        times(repeats)
    )
}

pub(super) fn refused(f: &mut fmt::Formatter<'_>, resets: u32) -> fmt::Result {
    if resets > 1 {
        return write!(
            f,
            "{resets} resets answered the client's SYNs: nothing listens there, or a filter rejects."
        );
    }
    f.write_str("A reset answered the SYN: nothing listens there, or a filter rejects.")
}

pub(super) fn behind_proxy(f: &mut fmt::Formatter<'_>, far: Nanos, rtt: Nanos) -> fmt::Result {
    write!(
        f,
        "Data is acknowledged after {rtt}, but the SYN was answered {far} later than that: a proxy, a NAT engine or a balancer acknowledges, and the server behind it is that far away or worked as long."
    )
}

pub(super) fn late(f: &mut fmt::Formatter<'_>, late: Nanos, rtt: Nanos) -> fmt::Result {
    write!(
        f,
        "The handshake took {late} more than a round trip does later ({rtt}): its packets stood in a queue or waited for a radio or an address, or whoever answers SYNs (a host, a balancer that opens its own connection first) was late."
    )
}
