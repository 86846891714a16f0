/* What a socket waits for, as its kernel sees it happen: small writes that Nagle's algorithm or a cork holds back, writers
 * that sleep or are refused for want of buffer, segments that are sent again and why. Sums for each socket; nothing is sent
 * to the reader for an event. Tracepoints only. */
#include "kernel.h"

/* TCP_NAGLE_OFF and TCP_NAGLE_CORK of net/tcp.h; ICSK_TIME_LOSS_PROBE; TCP_CA_Loss. */
#define NAGLE_OFF 1
#define CORK 2
#define LOSS_PROBE 5
#define CA_LOSS 4
#define EAGAIN 11

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
	/* Under way. */
	u64 hold_start_ns;
	u64 hold_corked;
	u64 round_ns;
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
	struct sums *sums = of_or_new((void *)ctx[0]);
	if (!sums)
		return 0;
	u64 now = bpf_ktime_get_ns();
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
	if (!sums || !sums->hold_start_ns)
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
	u64 time = bpf_ktime_get_ns() - sums->hold_start_ns;
	sums->hold_start_ns = 0;
	if (sums->hold_corked) {
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
	u8 state = tp->inet_conn.icsk_ca_state;
	if (tp->inet_conn.icsk_pending == LOSS_PROBE)
		sums->loss_probes++;
	else if (state == CA_LOSS)
		sums->timeouts++;
	else
		sums->fast_retransmits++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
