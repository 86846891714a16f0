/* What `tcpwhy check` cannot ask for: which buffers of living sockets their programs have set, and how much is asked for. The first is
 * an iterator, which runs when it is read and never else. */
#include "kernel.h"

#define SOL_SOCKET 1
#define SO_SNDBUF 7
#define SO_RCVBUF 8

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
} __attribute__((preserve_access_index));

/* One socket; the reader knows this layout (src/probe.rs). */
struct lock {
	u64 cookie;
	u32 locks;
	u32 padding;
};

/* A call of setsockopt(); the same. */
struct asked {
	u32 pid;
	u32 fd;
	u32 option;
	u32 bytes;
	char name[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} calls SEC(".maps");

/* SOCK_SNDBUF_LOCK and SOCK_RCVBUF_LOCK of sk_userlocks, a field of some bits. */
ALWAYS u32 locks_of(struct sock *sk)
{
	u32 offset = __builtin_preserve_field_info(sk->sk_userlocks, 0);
	u32 size = __builtin_preserve_field_info(sk->sk_userlocks, 1);
	u64 value = 0;
	if (size > 8)
		return 0;
	bpf_probe_read_kernel(&value, size, (char *)sk + offset);
	value <<= __builtin_preserve_field_info(sk->sk_userlocks, 4);
	return value >> __builtin_preserve_field_info(sk->sk_userlocks, 5);
}

SEC("iter/tcp")
int lists(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : 0;
	if (!tp)
		return 0;
	struct sock *sk = (void *)tp;
	struct lock lock = { .locks = locks_of(sk) & 3 };
	if (!lock.locks)
		return 0;
	READ(lock.cookie, sk->__sk_common.skc_cookie.counter);
	bpf_seq_write(ctx->meta->seq, &lock, sizeof(lock));
	return 0;
}

/* syscalls:sys_enter_setsockopt */
struct call {
	u64 common;
	u64 number;
	u64 fd;
	u64 level;
	u64 option;
	u64 value;
	u64 length;
};

SEC("tracepoint/syscalls/sys_enter_setsockopt")
int asks(struct call *call)
{
	if (call->level != SOL_SOCKET || (call->option != SO_SNDBUF && call->option != SO_RCVBUF))
		return 0;
	u32 bytes = 0;
	if (call->length < sizeof(bytes) || bpf_probe_read_user(&bytes, sizeof(bytes), (void *)call->value))
		return 0;
	struct asked *asked = bpf_ringbuf_reserve(&calls, sizeof(*asked), 0);
	if (!asked)
		return 0;
	asked->pid = bpf_get_current_pid_tgid() >> 32;
	asked->fd = call->fd;
	asked->option = call->option;
	asked->bytes = bytes;
	bpf_get_current_comm(asked->name, sizeof(asked->name));
	bpf_ringbuf_submit(asked, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
