/* What applications and timers do to sockets, one record for each: where a write begins, what a writer waited for, how long data
 * lay unread, which timer fires, how a socket is set up as its state changes. Tracepoints only. Records wait in a ring until the reader asks; what does not fit is counted. */
#include "kernel.h"

/* TCP_NAGLE_OFF and TCP_NAGLE_CORK of net/tcp.h, MSG_MORE, which is as good as a cork; ICSK_TIME_RETRANS and
 * ICSK_TIME_LOSS_PROBE; ICSK_ACK_SCHED; SOCK_NOSPACE; IPPROTO_TCP; TCP_ESTABLISHED and TCP_CLOSE; AF_INET. */
#define NAGLE_OFF 1
#define CORK 2
#define MORE 0x8000
#define RETRANSMIT 1
#define LOSS_PROBE 5
#define ACK_SCHEDULED 1
#define NOSPACE 2
#define TCP 6
#define ESTABLISHED 1
#define CLOSED 7
#define INET 2

/* A writer that was told of room and writes within this time has waited for nothing else. */
#define PROMPT_NS 1000000ULL

/* Beside the options: they are others than at the write before, or this is the first. */
#define CHANGED 0x8000

/* TCP_CHRONO_RWND_LIMITED - 1: jiffies in which the other end's window stopped it. */
#define WINDOW_LIMITED 1

enum kind { WRITE = 1, BLOCKED = 2, TIMER = 3, READ = 4, STATE = 5, HELD = 6 };

/* What holds bytes that are unsent. */
enum held { BY_NOTHING = 1, BY_CWND = 2, BY_PEER = 3, BY_OTHER = 4 };

/* Beside those: the congestion window is in slow start. */
#define SLOW_START 256

/* What a writer without room in its send buffer waited for in truth. */
enum limit { BY_BUFFER = 0, BY_WINDOW = 1, BY_NETWORK = 2, BY_WRITER = 3 };

/* One record; the reader knows this layout (src/events.rs). */
struct event {
	u64 time_ns;
	/* BLOCKED and READ: since when. STATE: SO_SNDBUF and, above it, SO_RCVBUF. WRITE: up to which number of the other end the
	 * application had read, and above it 1. */
	u64 since_ns;
	u32 kind;
	u32 netns;
	u32 pid;
	/* WRITE: the next sequence number, and how many bytes. TIMER: 0, 1 for a loss probe, or 2 for a delayed ACK. BLOCKED: a limit;
	 * whether it was asleep. READ: up to which number of the other end; how many bytes are left. STATE: the new one; scales of
	 * both windows, who set the buffers. HELD: by what; whether in slow start. */
	u32 a;
	u32 b;
	u16 family;
	u16 options;
	u16 local_port;
	u16 remote_port;
	u8 local[16];
	u8 remote[16];
	char name[16];
	u32 tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} lost SEC(".maps");

/* A call that goes on, and what it met. */
struct call {
	u64 cookie;
	/* The buffer was full at the last round: since when, and how long the window had stopped it until then. */
	u64 full_ns;
	u64 full_jiffies;
	/* Refused with EAGAIN or half way: since when, and the last ACK that found no room yet. */
	u64 refused_ns;
	u64 refused_jiffies;
	u64 room_ns;
	u32 window_jiffies;
	u32 limit;
	/* Where it will have written everything. */
	u32 end;
	u32 open;
	/* What was said of its options, and that it was. */
	u32 said;
	/* What was said to hold its bytes. */
	u32 held;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct call);
} calls SEC(".maps");

/* Data that lies unread, and since when; 0: none does. */
struct unread {
	u64 cookie;
	u64 since_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct unread);
} readers SEC(".maps");

/* The only network namespace that is wanted; 0: all. */
volatile const u32 only_netns = 0;
/* The kernel's tcp_write_timer and tcp_delack_timer, as sockets point at them. */
u64 write_timer = 0;
u64 ack_timer = 0;

ALWAYS u32 netns_of(struct sock *sk)
{
	struct net *net = 0;
	u32 inum = 0;
	READ(net, sk->__sk_common.skc_net.net);
	READ(inum, net->ns.inum);
	return inum;
}

ALWAYS struct event *begin(struct sock *sk, u32 kind, u32 netns)
{
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		u32 zero = 0;
		u64 *count = bpf_map_lookup_elem(&lost, &zero);
		if (count)
			__sync_fetch_and_add(count, 1);
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->time_ns = bpf_ktime_get_ns();
	e->kind = kind;
	e->netns = netns;
	READ(e->family, sk->__sk_common.skc_family);
	READ(e->local_port, sk->__sk_common.skc_num);
	u16 port = 0;
	READ(port, sk->__sk_common.skc_dport);
	e->remote_port = __builtin_bswap16(port);
	if (e->family == INET) {
		bpf_probe_read_kernel(e->local, 4, __builtin_preserve_access_index(&sk->__sk_common.skc_rcv_saddr));
		bpf_probe_read_kernel(e->remote, 4, __builtin_preserve_access_index(&sk->__sk_common.skc_daddr));
	} else {
		bpf_probe_read_kernel(e->local, 16,
				      __builtin_preserve_access_index(&sk->__sk_common.skc_v6_rcv_saddr));
		bpf_probe_read_kernel(e->remote, 16, __builtin_preserve_access_index(&sk->__sk_common.skc_v6_daddr));
	}
	return e;
}

/* Of what the process does that runs now. */
ALWAYS struct event *begin_of_process(struct sock *sk, u32 kind, u32 netns)
{
	struct event *e = begin(sk, kind, netns);
	if (e) {
		u64 both = bpf_get_current_pid_tgid();
		e->pid = both >> 32;
		e->tid = (u32)both;
		bpf_get_current_comm(e->name, sizeof(e->name));
	}
	return e;
}

ALWAYS struct call *call_of(struct sock *sk)
{
	u64 key = (u64)sk;
	return bpf_map_lookup_elem(&calls, &key);
}

ALWAYS struct call *call_of_or_new(struct sock *sk)
{
	u64 key = (u64)sk, cookie = bpf_get_socket_cookie(sk);
	struct call *call = call_of(sk);
	/* The kernel uses the memory of a socket again. */
	if (call && call->cookie == cookie)
		return call;
	static const struct call none;
	struct call new = none;
	new.cookie = cookie;
	bpf_map_update_elem(&calls, &key, &new, BPF_ANY);
	return call_of(sk);
}

/* What stops data that is queued: less than a segment is unsent and both windows have room for one: nothing but the buffer. */
ALWAYS u32 limit_of(struct tcp_sock *tp, u32 window_jiffies, u64 jiffies)
{
	u32 unsent = tp->write_seq - tp->snd_nxt, sent = tp->snd_nxt - tp->snd_una;
	u32 flight = tp->packets_out + tp->retrans_out - tp->sacked_out - tp->lost_out;
	if ((u64)window_jiffies * 2 > jiffies || sent + tp->mss_cache > tp->snd_wnd)
		return BY_WINDOW;
	return unsent < tp->mss_cache && flight < tp->snd_cwnd ? BY_BUFFER : BY_NETWORK;
}

ALWAYS void blocked(struct sock *sk, u32 netns, u64 since, u32 limit, u32 asleep)
{
	struct event *e = begin_of_process(sk, BLOCKED, netns);
	if (!e)
		return;
	e->since_ns = since;
	e->a = limit;
	e->b = asleep;
	bpf_ringbuf_submit(e, 0);
}

/* A call of send() goes round once for each buffer that it fills, and waits between two rounds if there is no room. */
SEC("tp_btf/tcp_sendmsg_locked")
int writes(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct msghdr *msg = (void *)ctx[1];
	struct sk_buff *tail = (void *)ctx[2];
	int goal = (int)ctx[3];
	u32 netns = netns_of(sk);
	if (only_netns && netns != only_netns)
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct call *call = tp ? call_of_or_new(sk) : 0;
	if (!call)
		return 0;
	u64 now = bpf_ktime_get_ns(), jiffies = bpf_jiffies64();
	u32 left = msg->msg_iter.count, end = tp->write_seq + left;
	u32 window = tp->chrono_stat[WINDOW_LIMITED];
	if (!call->open || call->end != end) {
		if (call->refused_ns && call->room_ns) {
			u32 limit = now - call->room_ns <= PROMPT_NS ? call->limit : BY_WRITER;
			blocked(sk, netns, call->refused_ns, limit, 0);
		}
		call->refused_ns = 0;
		struct event *e = begin_of_process(sk, WRITE, netns);
		if (e) {
			u8 nonagle = tp->nonagle;
			u32 options = nonagle & (NAGLE_OFF | CORK);
			options |= msg->msg_flags & MORE ? CORK : 0;
			e->a = tp->write_seq;
			e->b = left;
			e->since_ns = 1ULL << 32 | tp->copied_seq;
			e->options = call->said == options + 1 ? options : options | CHANGED;
			call->said = options + 1;
			bpf_ringbuf_submit(e, 0);
		}
		call->end = end;
		call->open = 1;
	} else if (call->full_ns) {
		u32 limit = limit_of(tp, window - call->window_jiffies, jiffies - call->full_jiffies);
		blocked(sk, netns, call->full_ns, limit, 1);
	}
	u32 len = 0;
	if (tail)
		READ(len, tail->len);
	int full = sk->sk_wmem_queued >= sk->sk_sndbuf && (!tail || (int)len >= goal);
	call->full_ns = full ? now : 0;
	call->full_jiffies = jiffies;
	call->window_jiffies = window;
	return 0;
}

/* The call returns. */
SEC("tp_btf/sock_send_length")
int write_ends(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct call *call = call_of(sk);
	if (!call || !call->open)
		return 0;
	call->open = 0;
	call->full_ns = 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	u64 flags = 0;
	struct socket *socket = 0;
	READ(socket, sk->sk_socket);
	READ(flags, socket->flags);
	if (tp && (flags & (1 << NOSPACE)) && tp->write_seq != call->end) {
		call->refused_ns = bpf_ktime_get_ns();
		call->refused_jiffies = bpf_jiffies64();
		call->window_jiffies = tp->chrono_stat[WINDOW_LIMITED];
		call->room_ns = 0;
	}
	return 0;
}

/* What holds the bytes that are unsent, in the order in which tcp_write_xmit asks; it may save up to a third of what it has room for
 * (tcp_tso_should_defer). */
ALWAYS u32 held_by(struct tcp_sock *tp)
{
	u32 unsent = tp->write_seq - tp->snd_nxt, cwnd = tp->snd_cwnd, mss = tp->mss_cache;
	u32 flight = tp->packets_out + tp->retrans_out - tp->sacked_out - tp->lost_out;
	int room = tp->snd_una + tp->snd_wnd - tp->snd_nxt;
	u32 phase = cwnd < tp->snd_ssthresh ? SLOW_START : 0;
	if (!unsent)
		return BY_NOTHING;
	if (flight >= cwnd)
		return BY_CWND | phase;
	if (room < (int)(unsent < mss ? unsent : mss))
		return BY_PEER;
	if ((u64)(cwnd - flight) * mss < (u32)room)
		return flight * 3 + 6 < cwnd * 2 ? BY_OTHER : BY_CWND | phase;
	return (u64)room * 3 > tp->snd_wnd ? BY_OTHER : BY_PEER;
}

/* As it is before an ACK changes it; said where it is another one than before. */
ALWAYS void tells_held(struct sock *sk, struct tcp_sock *tp, struct call *call)
{
	u32 held = held_by(tp);
	if (held == call->held)
		return;
	struct event *e = begin(sk, HELD, netns_of(sk));
	if (!e)
		return;
	e->a = held & 255;
	e->b = held >> 8;
	bpf_ringbuf_submit(e, 0);
	call->held = held;
}

/* A segment comes in, before it is looked at: the last one that finds a refused writer is the one that makes room for it. */
SEC("tp_btf/tcp_probe")
int comes_in(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct call *call = call_of(sk);
	struct tcp_sock *tp = call ? bpf_skc_to_tcp_sock(sk) : 0;
	if (!tp)
		return 0;
	tells_held(sk, tp, call);
	if (!call->refused_ns)
		return 0;
	u64 flags = 0;
	struct socket *socket = 0;
	READ(socket, sk->sk_socket);
	READ(flags, socket->flags);
	if (!(flags & (1 << NOSPACE)))
		return 0;
	call->room_ns = bpf_ktime_get_ns();
	call->limit = limit_of(tp, tp->chrono_stat[WINDOW_LIMITED] - call->window_jiffies,
			       bpf_jiffies64() - call->refused_jiffies);
	return 0;
}

/* There is something to read, or more than there was. */
SEC("tp_btf/sk_data_ready")
int becomes_readable(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	u32 netns = netns_of(sk);
	if (only_netns && netns != only_netns)
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || sk->__sk_common.skc_state != ESTABLISHED)
		return 0;
	u64 key = (u64)sk, cookie = bpf_get_socket_cookie(sk);
	struct unread *known = bpf_map_lookup_elem(&readers, &key);
	if (known && known->cookie == cookie) {
		if (!known->since_ns)
			known->since_ns = bpf_ktime_get_ns();
		return 0;
	}
	struct unread new = {cookie, bpf_ktime_get_ns()};
	bpf_map_update_elem(&readers, &key, &new, BPF_ANY);
	return 0;
}

/* The application has read some of it: what it took long for is told. */
SEC("tp_btf/tcp_rcv_space_adjust")
int reads(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	u64 key = (u64)sk, now = bpf_ktime_get_ns();
	struct unread *unread = bpf_map_lookup_elem(&readers, &key);
	struct tcp_sock *tp = unread ? bpf_skc_to_tcp_sock(sk) : 0;
	if (!tp || !unread->since_ns)
		return 0;
	u64 since = unread->since_ns;
	u32 left = tp->rcv_nxt - tp->copied_seq;
	unread->since_ns = left ? now : 0;
	if (now - since <= PROMPT_NS)
		return 0;
	struct event *e = begin_of_process(sk, READ, netns_of(sk));
	if (!e)
		return 0;
	e->since_ns = since;
	e->a = tp->copied_seq;
	e->b = left;
	bpf_ringbuf_submit(e, 0);
	return 0;
}

/* A connection opens or ends. */
SEC("tp_btf/inet_sock_set_state")
int changes_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int state = (int)ctx[2];
	if (state != ESTABLISHED && state != CLOSED)
		return 0;
	u32 netns = netns_of(sk);
	struct tcp_sock *tp = only_netns && netns != only_netns ? 0 : bpf_skc_to_tcp_sock(sk);
	struct event *e = tp ? begin(sk, STATE, netns) : 0;
	if (!e)
		return 0;
	e->a = state;
	u32 scaled = 0, sent = 0, own = 0, set = 0;
	READ_BITS(scaled, tp, rx_opt.wscale_ok);
	READ_BITS(sent, tp, rx_opt.snd_wscale);
	READ_BITS(own, tp, rx_opt.rcv_wscale);
	READ_BITS(set, sk, sk_userlocks);
	e->b = (scaled ? 1 | sent << 8 | own << 16 : 0) | (set & 3) << 24;
	e->since_ns = (u32)sk->sk_sndbuf | (u64)(u32)sk->sk_rcvbuf << 32;
	bpf_ringbuf_submit(e, 0);
	return 0;
}

/* By which functions the kernel's timers of sockets are known. */
SEC("tp_btf/tcp_probe")
int learns(u64 *ctx)
{
	struct tcp_sock *tp = write_timer ? 0 : bpf_skc_to_tcp_sock((void *)ctx[0]);
	if (tp) {
		READ(ack_timer, tp->inet_conn.icsk_delack_timer.function);
		READ(write_timer, tp->inet_conn.icsk_retransmit_timer.function);
	}
	return 0;
}

ALWAYS void tells_timer(struct sock *sk, u32 which)
{
	u32 netns = netns_of(sk);
	if (only_netns && netns != only_netns)
		return;
	struct event *e = begin(sk, TIMER, netns);
	if (!e)
		return;
	e->a = which;
	bpf_ringbuf_submit(e, 0);
}

/* A timer of the kernel fires. */
SEC("tp_btf/timer_expire_entry")
int timer_fires(u64 *ctx)
{
	void *timer = (void *)ctx[0], *function = 0;
	struct timer_list *t = timer;
	READ(function, t->function);
	if (!write_timer || (u64)function != write_timer)
		return 0;
	struct inet_connection_sock *connection = 0;
	u32 offset = __builtin_preserve_field_info(connection->icsk_retransmit_timer, 0);
	connection = timer - offset;
	u8 pending = 0;
	READ(pending, connection->icsk_pending);
	if (pending == RETRANSMIT || pending == LOSS_PROBE)
		tells_timer((void *)connection, pending == LOSS_PROBE);
	return 0;
}

/* The timer of a delayed ACK fires; it runs on when the ACK has gone with data. */
SEC("tp_btf/timer_expire_entry")
int ack_timer_fires(u64 *ctx)
{
	void *timer = (void *)ctx[0], *function = 0;
	struct timer_list *t = timer;
	READ(function, t->function);
	if (!ack_timer || (u64)function != ack_timer)
		return 0;
	struct inet_connection_sock *connection = 0;
	u32 offset = __builtin_preserve_field_info(connection->icsk_delack_timer, 0);
	connection = timer - offset;
	u8 pending = 0;
	READ(pending, connection->icsk_ack.pending);
	if (pending & ACK_SCHEDULED)
		tells_timer((void *)connection, 2);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
