//! Connection-id steering over a group of `SO_REUSEPORT` sockets, in the kernel.
//!
//! A classic BPF program reads the destination connection id of each datagram and names the socket, by
//! the rule of [`godwit_base::steering`]. It needs no privilege. The program sees the UDP payload; where it
//! reads beyond the end, the kernel takes 0 for its answer, which is shard 0 as the rule has it.
//!
//! The kernel numbers the sockets of a group in the order in which they were bound, and moves the last one
//! into the place of one that is closed: so all sockets of a group have to be bound before the first
//! datagram matters, and closed together.
//!
//! Merging of received datagrams happens per pair of addresses, not per connection id, so that a run may
//! still carry datagrams of another shard. These are handed on by whoever finds them.

use crate::linux::sys;
use godwit_base::steering::{MIN_CID_LEN, RANDOM_LEN, SHARD_AT, SHIFTS};
use std::io;
use std::os::fd::AsFd;

/// Where a short header's connection id begins.
const SHORT_CID_AT: u32 = 1;
/// Where a long header tells the length of its destination connection id, and where that begins.
const LONG_CID_LEN_AT: u32 = 5;
const LONG_CID_AT: u32 = 6;

/// Steers the datagrams of the whole group that `socket` belongs to, over `shards` sockets.
///
/// # Errors
/// If the kernel refuses the program, or the socket is in no group. Datagrams are then spread by address,
/// and those of another shard have to be handed on.
pub fn attach(socket: impl AsFd, key: [u32; 4], shards: usize) -> io::Result<()> {
    let shards = u32::try_from(shards)
        .ok()
        .filter(|shards| (1..=256).contains(shards))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "1 to 256 shards can be steered to"))?;
    sys::attach_reuseport_filter(socket, &program(key, shards))
}

/// Scratch memory of the program: the last two random bytes, and the masked shard.
const TAIL: u32 = 0;
const SHARD: u32 = 1;

fn program(key: [u32; 4], shards: u32) -> Vec<libc::sock_filter> {
    use libc::{
        BPF_ABS, BPF_B, BPF_H, BPF_IMM, BPF_IND, BPF_JGE, BPF_JSET, BPF_LD, BPF_LDX, BPF_MEM, BPF_ST, BPF_W,
    };
    use libc::{
        BPF_ALU, BPF_JA, BPF_JMP, BPF_K, BPF_MISC, BPF_MOD, BPF_MUL, BPF_RET, BPF_RSH, BPF_TAX, BPF_X,
        BPF_XOR,
    };
    const BPF_A: u32 = 0x10;
    let xor_x = plain(BPF_ALU | BPF_XOR | BPF_X, 0);
    let fold = |shift: u32| [plain(BPF_MISC | BPF_TAX, 0), plain(BPF_ALU | BPF_RSH | BPF_K, shift), xor_x];
    let multiply = |by: u32| plain(BPF_ALU | BPF_MUL | BPF_K, by | 1);
    let mut code = vec![
        plain(BPF_LD | BPF_B | BPF_ABS, 0),
        jump(BPF_JMP | BPF_JSET | BPF_K, 0x80, 0, 5),
        // A long header. Too short an id for the rule is the first shard's.
        plain(BPF_LD | BPF_B | BPF_ABS, LONG_CID_LEN_AT),
        jump(BPF_JMP | BPF_JGE | BPF_K, MIN_CID_LEN as u32, 1, 0),
        plain(BPF_RET | BPF_K, 0),
        plain(BPF_LDX | BPF_IMM, LONG_CID_AT),
        plain(BPF_JMP | BPF_JA, 1),
        // A short header.
        plain(BPF_LDX | BPF_IMM, SHORT_CID_AT),
        // Both: X is where the id begins. Its last byte is read only to see that it is there.
        plain(BPF_LD | BPF_B | BPF_IND, MIN_CID_LEN as u32 - 1),
        plain(BPF_LD | BPF_B | BPF_IND, SHARD_AT as u32),
        plain(BPF_ST, SHARD),
        plain(BPF_LD | BPF_H | BPF_IND, RANDOM_LEN as u32 - 2),
        plain(BPF_ST, TAIL),
        plain(BPF_LD | BPF_W | BPF_IND, 0),
        plain(BPF_ALU | BPF_XOR | BPF_K, key[0]),
        multiply(key[1]),
    ];
    code.extend(fold(SHIFTS[0]));
    code.extend([plain(BPF_LDX | BPF_MEM, TAIL), xor_x, multiply(key[2])]);
    code.extend(fold(SHIFTS[1]));
    code.push(multiply(key[3]));
    code.extend(fold(SHIFTS[2]));
    code.extend([
        plain(BPF_ALU | BPF_RSH | BPF_K, 24),
        plain(BPF_LDX | BPF_MEM, SHARD),
        xor_x,
        plain(BPF_ALU | BPF_MOD | BPF_K, shards),
        plain(BPF_RET | BPF_A, 0),
    ]);
    code
}

fn plain(code: u32, k: u32) -> libc::sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u32, k: u32, if_true: u8, if_false: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: if_true, jf: if_false, k }
}
