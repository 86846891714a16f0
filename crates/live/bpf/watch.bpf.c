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
/* skb_set_tcp_pure_ack: what the kernel gives to an ACK without data for its size. */
#define PURE_ACK 2

/* A jiffy at HZ=100 and more of a delayed ACK: a hold longer than the trip by so much was not for the trip. */
#define LATE_NS 10000000ULL

/* Longer than any copying of 64 KB takes. */
#define ASLEEP_NS 1000000ULL

struct held {
	u64 count;
	u64 time_ns;
	u64 longest_ns;
};

/* Sums of one socket; the reader knows this layout (src/kernel.rs). */
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
	/* Under way. */
	u64 hold_start_ns;
	u64 hold_corked;
	u64 round_ns;
	u64 ready_ns;
	u64 queue_ns;
	u64 queue_seq;
	/* When the last two segments with data left. */
	u64 left_ns;
	u64 left_before_ns;
	/* Timeouts in a row, as far as they are counted. */
	u64 retries;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct sums);
} sockets SEC(".maps");

ALWAYS struct sums *of(u64 sk)
{
	return bpf_map_lookup_elem(&sockets, &sk);
}

ALWAYS struct sums *of_or_new(struct sock *sk)
{
	u64 key = (u64)sk, cookie = bpf_get_socket_cookie(sk);
	struct sums *sums = of(key);
	/* The kernel uses the memory of a socket again. */
	if (sums && sums->cookie == cookie)
		return sums;
	static const struct sums none;
	struct sums new = none;
	new.cookie = cookie;
	bpf_map_update_elem(&sockets, &key, &new, BPF_ANY);
	return of(key);
}

ALWAYS void add(struct held *held, u64 ns)
{
	held->count++;
	held->time_ns += ns;
	if (ns > held->longest_ns)
		held->longest_ns = ns;
}

/* A write has been given to TCP, which has sent what it may: what is left is held back. */
SEC("tp_btf/sock_send_length")
int write_ends(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int returned = (int)ctx[1];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	struct sums *sums = of_or_new(sk);
	if (!sums)
		return 0;
	u64 now = bpf_ktime_get_ns();
	u32 unsent = tp->write_seq - tp->snd_nxt, sent = tp->snd_nxt - tp->snd_una;
	u32 flight = tp->packets_out + tp->retrans_out - tp->sacked_out - tp->lost_out;
	if (returned == -EAGAIN)
		sums->refused++;
	sums->round_ns = 0;
	if (sums->hold_start_ns || !unsent || unsent >= tp->mss_cache)
		return 0;
	u8 nonagle = tp->nonagle;
	int corked = nonagle & CORK;
	int room = flight < tp->snd_cwnd && sent + unsent <= tp->snd_wnd;
	if (corked || (tp->packets_out && room && !(nonagle & NAGLE_OFF))) {
		sums->hold_start_ns = now;
		sums->hold_corked = corked;
	}
	return 0;
}

/* A call of send() goes round once for each buffer that it fills. Between two rounds it copies 64 KB at most, or sleeps. */
SEC("tp_btf/tcp_sendmsg_locked")
int write_goes_on(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct sums *sums = tp ? of_or_new(sk) : 0;
	if (!sums)
		return 0;
	u64 now = bpf_ktime_get_ns();
	/* A call begins, and a segment or more waits before it. */
	if (!sums->round_ns && !sums->queue_ns && tp->write_seq - tp->snd_nxt >= tp->mss_cache) {
		sums->queue_ns = now;
		sums->queue_seq = tp->write_seq;
	}
	if (sums->round_ns && now - sums->round_ns >= ASLEEP_NS)
		add(&sums->blocked, now - sums->round_ns);
	sums->round_ns = now;
	return 0;
}

/* A segment leaves; with payload it ends a hold. */
SEC("tp_btf/net_dev_queue")
int leaves(u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];
	u64 sk = 0;
	READ(sk, skb->sk);
	struct sums *sums = sk ? of(sk) : 0;
	u32 size = 0;
	READ(size, skb->truesize);
	if (!sums || size == PURE_ACK)
		return 0;
	u64 now = bpf_ktime_get_ns();
	sums->left_before_ns = sums->left_ns;
	sums->left_ns = now;
	if (sums->queue_ns) {
		struct tcp_sock *sender = (void *)sk;
		u32 next = 0, bytes = 0;
		READ(next, sender->snd_nxt);
		READ(bytes, skb->len);
		/* snd_nxt moves on only after this. */
		if ((int)(next + bytes - (u32)sums->queue_seq) > 0) {
			add(&sums->queued, now - sums->queue_ns);
			sums->queue_ns = 0;
		}
	}
	if (!sums->hold_start_ns)
		return 0;
	unsigned char *head = 0, *data = 0;
	u16 transport = 0;
	u32 len = 0;
	u8 offset = 0;
	READ(head, skb->head);
	READ(data, skb->data);
	READ(transport, skb->transport_header);
	READ(len, skb->len);
	bpf_probe_read_kernel(&offset, 1, head + transport + 12);
	u64 headers = (u64)(head + transport - data) + (offset >> 4) * 4;
	if (len <= headers)
		return 0;
	u64 time = now - sums->hold_start_ns;
	sums->hold_start_ns = 0;
	if (sums->hold_corked) {
		/* Shorter ones are the program's own time between two calls, for which it corked. */
		if (time >= ASLEEP_NS)
			add(&sums->cork, time);
		return 0;
	}
	struct tcp_sock *tp = (void *)sk;
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
	struct sock *sk = (void *)ctx[0];
	u8 state = sk->__sk_common.skc_state;
	if ((state != ESTABLISHED && state != CLOSE_WAIT) || !bpf_skc_to_tcp_sock(sk))
		return 0;
	struct sums *sums = of_or_new(sk);
	if (sums && !sums->ready_ns)
		sums->ready_ns = bpf_ktime_get_ns();
	return 0;
}

/* A call that reads returns. */
SEC("tp_btf/sock_recv_length")
int read_ends(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct sums *sums = of((u64)sk);
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
