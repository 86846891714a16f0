//! What is said of queues that are full, and what has no effect on them.

use crate::sums::says;
use crate::wire::{Tap, Wire, ms};
use tcpwhy_base::Cause;

/// SYNs that the server's tap saw and nobody answered: a full queue, perhaps. What is often advised for it
/// does nothing.
#[test]
fn syns_that_a_server_does_not_answer_and_what_is_has_no_effect() {
    let mut w = Wire::new(Tap::Server, ms(20));
    for t in [0, 1000] {
        w.at(ms(t)).client().syn().lost();
    }
    w.at(ms(3000)).client().syn();
    w.at(ms(3010)).server().syn_ack();
    w.at(ms(3020)).client().ack();
    w.at(ms(3030)).client().data(100);
    w.at(ms(3040)).server().data(50);
    says(&w.analysis(), Cause::SynRetransmit, "
        syn_retransmit server lost 3.00 s (0.990) tail 0 ns n 1 of 3.00 s to 3.00 s
        at 1.0 #1-3 evidence 1-3 in 1 [1]
        The SYN was sent 2 times more over 3.00 s before it was answered, though it had reached the server's tap: its host ignored it, as it does with a full accept queue.
        listen_backlog at server server 10.0.0.2:80 connection 1 side server saves 3.00 s
        Linux: Check: Send-Q of `ss -ltn 'sport = :80'` is the limit that holds, and `nstat -az TcpExtListenOverflows` must stop rising
        firewall at path server 10.0.0.2:80 connection 1 side server saves 3.00 s
        Linux: Capture at the server as well: `tcpdump -ni any 'tcp port 80 and tcp[tcpflags] & tcp-syn != 0'`: SYN seen means the host dropped it, not seen means the path did
        reuse_connections at client server 10.0.0.2:80 connection 1 side server saves 3.00 s
        no effect: max_syn_backlog at server: tcp_max_syn_backlog alone: the backlog of listen() and somaxconn bound both queues
        no effect: abort_on_overflow at server: tcp_abort_on_overflow=1, which is not asked when a SYN meets a full queue");
}

/// The same from the client: where they were lost does not show, and nothing is said to have no effect.
#[test]
fn syns_that_nobody_answers_and_the_client_saw() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.at(ms(0)).client().syn().lost();
    w.at(ms(1000)).client().syn();
    w.at(ms(1010)).server().syn_ack();
    w.at(ms(1020)).client().ack();
    w.at(ms(1030)).client().data(100);
    w.at(ms(1040)).server().data(50);
    says(&w.analysis(), Cause::SynRetransmit, "
        syn_retransmit nobody lost 1.00 s (0.952) tail 0 ns n 1 of 1.00 s to 1.00 s
        at 1.0 #1-2 evidence 1-2 in 1 [1]
        The SYN was sent once more over 1.00 s before it was answered: it was lost, or the server's host ignored it, as it does with a full accept queue (accept_queue_full).
        firewall at path server 10.0.0.2:80 connection 1 saves 1.00 s
        Linux: Capture at the server as well: `tcpdump -ni any 'tcp port 80 and tcp[tcpflags] & tcp-syn != 0'`: SYN seen means the host dropped it, not seen means the path did
        listen_backlog at server server 10.0.0.2:80 connection 1 saves 1.00 s
        Linux: Check: Send-Q of `ss -ltn 'sport = :80'` is the limit that holds, and `nstat -az TcpExtListenOverflows` must stop rising
        reuse_connections at client server 10.0.0.2:80 connection 1 saves 1.00 s");
}

#[test]
fn a_full_accept_queue_and_what_is_has_no_effect() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 100).lost();
    w.at(ms(690)).client().repeat(0, 100).lost();
    w.at(ms(1010)).server().syn_ack();
    w.at(ms(1020)).client().ack();
    w.at(ms(1570)).client().repeat(0, 100);
    w.at(ms(1580)).server().data(50);
    w.at(ms(1590)).client().ack();
    says(&w.analysis(), Cause::AcceptQueueFull, "
        accept_queue_full server lost 1.56 s (0.981) tail 0 ns n 4 of 20.0 ms to 880 ms
        at 1.1 #6-9 evidence 6-9 4-5 5-6 9-10 in 1 [1]
        After the client's final ACK the server repeated its SYN-ACK once and the first data was sent 3 times more: the server had not taken the final ACK.
        listen_backlog at server server 10.0.0.2:80 connection 1 side server saves 1.56 s
        Linux: Check: Send-Q of `ss -ltn 'sport = :80'` is the limit that holds, and `nstat -az TcpExtListenOverflows` must stop rising
        accept_faster at server server 10.0.0.2:80 connection 1 side server saves 1.56 s
        no effect: max_syn_backlog at server: tcp_max_syn_backlog alone: the backlog of listen() and somaxconn bound both queues
        no effect: abort_on_overflow at server: tcp_abort_on_overflow=1, which makes an error of the wait");
}
