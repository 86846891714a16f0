/* What the programs use of the kernel, and nothing else. Structures are those of the running kernel: where a field stands is
 * looked up when a program is loaded (CO-RE). */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define ALWAYS static inline __attribute__((always_inline))
#define __uint(name, value) int(*name)[value]
#define __type(name, type) typeof(type) *name

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_ANY = 0 };

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const bpf_get_current_comm)(void *to, u32 size) = (void *)16;
static u64 (*const bpf_get_socket_cookie)(void *sk) = (void *)46;
static long (*const bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
static long (*const bpf_seq_write)(void *seq, const void *data, u32 size) = (void *)127;
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *record, u64 flags) = (void *)132;
static struct tcp_sock *(*const bpf_skc_to_tcp_sock)(void *sk) = (void *)137;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	u8 bytes[16];
};

typedef struct {
	s64 counter;
} atomic64_t;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
	atomic64_t skc_cookie;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct socket {
	unsigned long flags;
};

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	int sk_sndbuf;
	int sk_rcvbuf;
	int sk_wmem_queued;
	u8 sk_userlocks : 4;
};

struct iov_iter {
	unsigned long count;
};

struct msghdr {
	unsigned int msg_flags;
	struct iov_iter msg_iter;
};

struct timer_list {
	void *function;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	u8 icsk_retransmits;
	u8 icsk_pending;
	struct timer_list icsk_retransmit_timer;
	struct timer_list icsk_delack_timer;
	struct {
		u8 pending;
	} icsk_ack;
};

struct tcp_options_received {
	u16 wscale_ok : 1;
	u16 snd_wscale : 4;
	u16 rcv_wscale : 4;
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 write_seq;
	u32 snd_nxt;
	u32 snd_una;
	u32 rcv_nxt;
	u32 copied_seq;
	u32 snd_wnd;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 mss_cache;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u8 nonagle : 4;
	struct tcp_options_received rx_opt;
	struct minmax rtt_min;
	u64 tcp_clock_cache;
	u32 chrono_stat[3];
};

struct sk_buff {
	struct sock *sk;
	unsigned int len;
	unsigned int truesize;
	u16 transport_header;
	unsigned char *head;
	unsigned char *data;
};

#pragma clang attribute pop

/* A copy of a field of any kernel pointer, wherever it stands in this kernel. */
#define READ(to, from) \
	bpf_probe_read_kernel(&(to), sizeof(to), __builtin_preserve_access_index(&(from)))

/* The same of a field that is a part of a byte in some kernels, and a whole one in others: little-endian. */
#define READ_BITS(to, from, field) ({ \
	u64 bits = 0; \
	bpf_probe_read_kernel(&bits, __builtin_preserve_field_info((from)->field, 1), \
			      (void *)(from) + __builtin_preserve_field_info((from)->field, 0)); \
	bits <<= __builtin_preserve_field_info((from)->field, 4); \
	(to) = bits >> __builtin_preserve_field_info((from)->field, 5); \
})
