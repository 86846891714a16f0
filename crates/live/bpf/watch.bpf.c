/* What a socket waits for, as its kernel sees it happen: small writes that Nagle's algorithm or a cork holds back, writers
 * that sleep or are refused for want of buffer, writes that queue behind unsent bytes, data that lies unread, segments that are
 * sent again, why, and what the timer took. Sums for each socket; nothing is sent to the reader for an event. Tracepoints only. */
#include "kernel.h"

/* TCP_NAGLE_OFF and TCP_NAGLE_CORK of net/tcp.h; ICSK_TIME_LOSS_PROBE; TCP_CA_Loss. */
#define NAGLE_OFF 1
#define CORK 2
#define LOSS_PROBE 5
#define CA_LOSS 4
#define EAGAIN 11
/* MSG_PEEK; TCP_ESTABLISHED and TCP_CLOSE_WAIT, in which data comes and is read; states of a handshake. */
#define PEEK 2
#define ESTABLISHED 1
#define SYN_SENT 2
#define SYN_RECV 3
#define CLOSE_WAIT 8
/* SOCK_NOSPACE: a writer found no room, and has not been told of any. */
#define NOSPACE 2
/* skb_set_tcp_pure_ack: what the kernel gives to an ACK without data for its size. */
#define PURE_ACK 2

/* A jiffy at HZ=100 and more of a delayed ACK: a hold longer than the trip by so much was not for the trip. */
#define LATE_NS 10000000ULL

/* Shorter waits are what hosts need to wake somebody up. */
#define ASLEEP_NS 1000000ULL

struct held {
	u64 count;
	u64 time_ns;
	u64 longest_ns;
};

/* Sums of one socket; the reader knows this layout (src/facts.rs). */
struct sums {
	u64 cookie;
	struct held nagle;
	struct held nagle_delayed_ack;
	struct held cork;
	/* Writers that slept in a call. */
	struct held blocked;
	u64 refused;
	u64 fast_retransmits;
	u64 timeouts;
	u64 loss_probes;
	/* Data that lay readable for a millisecond or more. */
	struct held unread;
	/* Writes behind unsent bytes, from the call until their first byte leaves; one at a time. */
	struct held queued;
	/* From the last segment until a timer sent again. */
	struct held timeout;
	struct held probe;
	/* Writers that were refused, or half way: until there was room, and from then until they wrote. */
	struct held no_room;
	struct held late_writer;
	/* Under way. */
	u64 hold_start_ns;
	u64 hold_corked;
	/* The buffer was full at the last round of the call. */
	u64 full_ns;
	u64 ready_ns;
	u64 queue_ns;
	u64 queue_seq;
	/* When the last two segments with data left. */
	u64 left_ns;
	u64 left_before_ns;
	/* Timeouts in a row, as far as they are counted. */
	u64 retries;
	/* Refused since, and the last segment that came before there was room. */
	u64 refused_ns;
	u64 room_ns;
	/* A call goes on, and where it will have written everything. */
	u32 in_call;
	u32 call_end;
	/* Of which turn all that is. */
	u64 turn;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct sums);
} sockets SEC(".maps");

/* How often the programs for each write and read began or ceased to listen: what was under way before is not known to go on. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} turns SEC(".maps");

/* How often programs ran that run for each write, read and segment: what they cost is rationed. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} runs SEC(".maps");

ALWAYS void count(void)
{
	u32 zero = 0;
	u64 *n = bpf_map_lookup_elem(&runs, &zero);
	if (n)
		++*n;
}

/* Anybody was ever refused: only then what comes in is looked at. */
u32 refusals = 0;

/* By its cookie: the kernel uses the memory of a socket again, perhaps before the sums are read. */
ALWAYS struct sums *of(struct sock *sk)
{
	u64 cookie = sk->__sk_common.skc_cookie.counter;
	struct sums *sums = cookie ? bpf_map_lookup_elem(&sockets, &cookie) : 0;
	u32 zero = 0;
	u64 *turn = sums ? bpf_map_lookup_elem(&turns, &zero) : 0;
	if (!turn)
		return 0;
	if (sums->turn != *turn) {
		sums->turn = *turn;
		sums->hold_start_ns = sums->full_ns = sums->ready_ns = sums->queue_ns = 0;
		sums->left_ns = sums->left_before_ns = sums->refused_ns = sums->room_ns = 0;
		sums->in_call = 0;
	}
	return sums;
}

ALWAYS struct sums *of_or_new(struct sock *sk)
{
	struct sums *sums = of(sk);
	if (sums)
		return sums;
	/* Given to it when somebody first asks. */
	u64 cookie = bpf_get_socket_cookie(sk);
	static const struct sums none;
	struct sums new = none;
	new.cookie = cookie;
	bpf_map_update_elem(&sockets, &cookie, &new, BPF_ANY);
	return of(sk);
}

ALWAYS void add(struct held *held, u64 ns)
{
	held->count++;
	held->time_ns += ns;
	if (ns > held->longest_ns)
		held->longest_ns = ns;
}

/* Its writer has been told that there is no room, and of no room since. */
ALWAYS int has_no_room(struct sock *sk)
{
	struct socket *socket = 0;
	u64 flags = 0;
	READ(socket, sk->sk_socket);
	READ(flags, socket->flags);
	return flags & (1 << NOSPACE);
}

/* A write has been given to TCP, which has sent what it may: what is left is held back. */
SEC("tp_btf/sock_send_length")
int write_ends(u64 *ctx)
{
	count();
	struct sock *sk = (void *)ctx[0];
	int returned = (int)ctx[1];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	struct sums *sums = of_or_new(sk);
	if (!sums)
		return 0;
	u32 written = tp->write_seq;
	u32 unsent = written - tp->snd_nxt, sent = tp->snd_nxt - tp->snd_una;
	if (returned == -EAGAIN)
		sums->refused++;
	if (sums->in_call && sums->call_end != written && has_no_room(sk)) {
		sums->refused_ns = bpf_ktime_get_ns();
		sums->room_ns = 0;
		refusals = 1;
	}
	sums->in_call = 0;
	sums->full_ns = 0;
	if (sums->hold_start_ns || !unsent || unsent >= tp->mss_cache)
		return 0;
	u32 flight = tp->packets_out + tp->retrans_out - tp->sacked_out - tp->lost_out;
	u8 nonagle = tp->nonagle;
	int corked = nonagle & CORK;
	int room = flight < tp->snd_cwnd && sent + unsent <= tp->snd_wnd;
	if (corked || (tp->packets_out && room && !(nonagle & NAGLE_OFF))) {
		sums->hold_start_ns = bpf_ktime_get_ns();
		sums->hold_corked = corked;
	}
	return 0;
}

/* A writer that was refused writes again. */
ALWAYS void writes_again(struct sock *sk, struct sums *sums)
{
	u64 now = bpf_ktime_get_ns(), room = sums->room_ns;
	if (!room || has_no_room(sk))
		room = now;
	add(&sums->no_room, room - sums->refused_ns);
	if (now - room >= ASLEEP_NS)
		add(&sums->late_writer, now - room);
	sums->refused_ns = 0;
}

/* A call of send() goes round once for each buffer that it fills, and sleeps between two rounds if there is no room. */
SEC("tp_btf/tcp_sendmsg_locked")
int write_goes_on(u64 *ctx)
{
	count();
	struct sock *sk = (void *)ctx[0];
	struct msghdr *msg = (void *)ctx[1];
	struct sk_buff *tail = (void *)ctx[2];
	int goal = (int)ctx[3];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct sums *sums = tp ? of_or_new(sk) : 0;
	if (!sums)
		return 0;
	u32 written = tp->write_seq, end = written + (u32)msg->msg_iter.count;
	if (!sums->in_call || sums->call_end != end) {
		if (sums->refused_ns)
			writes_again(sk, sums);
		/* A call begins, and a segment or more waits before it. */
		if (!sums->queue_ns && written - tp->snd_nxt >= tp->mss_cache) {
			sums->queue_ns = bpf_ktime_get_ns();
			sums->queue_seq = written;
		}
		sums->in_call = 1;
		sums->call_end = end;
	} else if (sums->full_ns) {
		u64 asleep = bpf_ktime_get_ns() - sums->full_ns;
		if (asleep >= ASLEEP_NS)
			add(&sums->blocked, asleep);
	}
	sums->full_ns = 0;
	if (sk->sk_wmem_queued >= sk->sk_sndbuf) {
		u32 len = 0;
		if (tail)
			READ(len, tail->len);
		if (!tail || (int)len >= goal)
			sums->full_ns = bpf_ktime_get_ns();
	}
	return 0;
}

/* A segment comes in, before it is looked at: the last one that finds a refused writer is the one that makes room for it. */
SEC("tp_btf/tcp_probe")
int comes_in(u64 *ctx)
{
	count();
	if (!refusals)
		return 0;
	struct sock *sk = (void *)ctx[0];
	struct sums *sums = of(sk);
	if (sums && sums->refused_ns && has_no_room(sk))
		sums->room_ns = bpf_ktime_get_ns();
	return 0;
}

/* A segment leaves; with payload it ends a hold. */
SEC("tp_btf/net_dev_queue")
int leaves(u64 *ctx)
{
	count();
	struct sk_buff *skb = (void *)ctx[0];
	struct sock *sk = skb->sk;
	if (!sk || skb->truesize == PURE_ACK)
		return 0;
	/* Sums are kept of TCP's sockets alone. */
	struct sums *sums = of(sk);
	if (!sums)
		return 0;
	struct tcp_sock *tp = (void *)sk;
	/* Read from the clock when TCP began to send. */
	u64 now = 0;
	READ(now, tp->tcp_clock_cache);
	sums->left_before_ns = sums->left_ns;
	sums->left_ns = now;
	if (sums->queue_ns) {
		u32 next = 0;
		READ(next, tp->snd_nxt);
		/* snd_nxt moves on only after this. */
		if ((int)(next + skb->len - (u32)sums->queue_seq) > 0) {
			if (now > sums->queue_ns)
				add(&sums->queued, now - sums->queue_ns);
			sums->queue_ns = 0;
		}
	}
	if (!sums->hold_start_ns)
		return 0;
	unsigned char *head = skb->head, *data = skb->data;
	u16 transport = skb->transport_header;
	u8 offset = 0;
	bpf_probe_read_kernel(&offset, 1, head + transport + 12);
	u64 headers = (u64)(head + transport - data) + (offset >> 4) * 4;
	if (skb->len <= headers)
		return 0;
	u64 time = now > sums->hold_start_ns ? now - sums->hold_start_ns : 0;
	sums->hold_start_ns = 0;
	if (sums->hold_corked) {
		/* Shorter ones are the program's own time between two calls, for which it corked. */
		if (time >= ASLEEP_NS)
			add(&sums->cork, time);
		return 0;
	}
	u32 trip_us = 0;
	READ(trip_us, tp->rtt_min.s[0].v);
	u64 trip = trip_us == ~0U ? 0 : trip_us * 1000ULL;
	if (time > trip + trip / 4 + LATE_NS)
		add(&sums->nagle_delayed_ack, time);
	else
		add(&sums->nagle, time);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int again(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct sums *sums = tp ? of_or_new(sk) : 0;
	if (!sums)
		return 0;
	u8 state = tp->inet_conn.icsk_ca_state, retries = tp->inet_conn.icsk_retransmits;
	/* It has left already: the one before it is what the timer ran from. */
	u64 waited = sums->left_before_ns ? sums->left_ns - sums->left_before_ns : 0;
	u8 opening = sk->__sk_common.skc_state;
	if (opening == SYN_SENT || opening == SYN_RECV)
		return 0;
	if (tp->inet_conn.icsk_pending == LOSS_PROBE) {
		sums->loss_probes++;
		add(&sums->probe, waited);
	} else if (retries && retries != sums->retries) {
		/* tcp_retransmit_timer counts before it sends; ACKs that advance set it back. */
		add(&sums->timeout, waited);
	}
	sums->retries = retries;
	if (tp->inet_conn.icsk_pending == LOSS_PROBE)
		return 0;
	if (state == CA_LOSS)
		sums->timeouts++;
	else
		sums->fast_retransmits++;
	return 0;
}

/* There is something to read. */
SEC("tp_btf/sk_data_ready")
int becomes_readable(u64 *ctx)
{
	count();
	struct sock *sk = (void *)ctx[0];
	u8 state = sk->__sk_common.skc_state;
	if (state != ESTABLISHED && state != CLOSE_WAIT)
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct sums *sums = tp ? of_or_new(sk) : 0;
	/* Read from the clock when the segment came. */
	if (sums && !sums->ready_ns)
		sums->ready_ns = tp->tcp_clock_cache;
	return 0;
}

/* A call that reads returns. */
SEC("tp_btf/sock_recv_length")
int read_ends(u64 *ctx)
{
	count();
	struct sock *sk = (void *)ctx[0];
	struct sums *sums = of(sk);
	if (!sums || !sums->ready_ns || ((int)ctx[2] & PEEK))
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	u64 now = bpf_ktime_get_ns();
	if (now - sums->ready_ns >= ASLEEP_NS)
		add(&sums->unread, now - sums->ready_ns);
	/* What it left is late from now on. */
	sums->ready_ns = tp->rcv_nxt != tp->copied_seq ? now : 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
